package mapper

import (
	"cmp"
	"slices"

	"carma/internal/units"
)

// HelpersBooked sets the allocation for the helpers of a suite on a machine. Helpers are
// in no queue: the program that starts them asks [State.HelpersFit] first. Zero memory
// and CPUs end the allocation.
type HelpersBooked struct {
	At    units.Instant `json:"at"`
	Node  string        `json:"node,omitempty"`
	Suite string        `json:"suite"` // names it among all suites
	// Memory is allocated, and CPUs thousandths of a processor.
	Memory units.Bytes `json:"memory,omitempty"`
	CPUs   int64       `json:"cpus,omitempty"`
}

func (e HelpersBooked) when() units.Instant { return e.At }
func (HelpersBooked) kind() string          { return "helpers-booked" }
func (HelpersBooked) about() TaskID         { return 0 }

// HelpersShare is the allocation for the helpers of a suite on a machine.
type HelpersShare struct {
	Suite  string      `json:"suite"`
	Memory units.Bytes `json:"memory,omitempty"`
	CPUs   int64       `json:"cpus,omitempty"`
	Used   units.Bytes `json:"used,omitempty"` // last sample
}

// HelpersUse is the host memory that the helpers of a suite use, without page cache.
type HelpersUse struct {
	Suite string      `json:"suite"`
	Used  units.Bytes `json:"used"`
}

func (s *State) helpersBooked(ev HelpersBooked) {
	h := s.openHost(ev.Node)
	memory, cpus := ev.Memory.Clamp(), max(0, min(ev.CPUs, mostCPUs))
	i, there := slices.BinarySearchFunc(h.Helpers, ev.Suite, func(a HelpersShare, name string) int { return cmp.Compare(a.Suite, name) })
	switch gone := memory == 0 && cpus == 0; {
	case there && gone:
		h.Helpers = slices.Delete(h.Helpers, i, i+1)
	case there:
		h.Helpers[i].Memory, h.Helpers[i].CPUs = memory, cpus
	case !gone:
		h.Helpers = slices.Insert(h.Helpers, i, HelpersShare{Suite: ev.Suite, Memory: memory, CPUs: cpus})
	}
	h.settle()
	s.closeHosts()
	s.dirty = true
}

// withoutHelpers returns what a machine has left for tasks while its helpers stay.
func (h *Host) withoutHelpers() (memory units.Bytes, cpus int64) {
	return h.Memory - h.helpers, h.CPUs - h.helpersCPUs
}

// helpersBar reports whether no machine could take a task even if no other ran, because
// the helpers of suites have too much. Helpers may stay for weeks, so nothing is reserved
// for such a task.
func (q *schedulingQueue) helpersBar(t *Task) bool {
	if t.Phase == Suspended || !slices.ContainsFunc(q.hosts, func(h *Host) bool { return len(h.Helpers) > 0 }) {
		return false // a suspended task already has its allocation
	}
	able := func(h *Host) bool {
		memory, cpus := h.withoutHelpers()
		share := q.hostShare(t, h)
		return !h.Known || share.Memory <= memory && (share.CPUs == 0 || share.CPUs <= cpus)
	}
	if t.GPUs > 0 {
		return !slices.ContainsFunc(q.gpus, func(g *GPU) bool { h := q.host(g.Node); return h == nil || able(h) })
	}
	known := slices.ContainsFunc(q.hosts, func(h *Host) bool { return h.Known })
	return !slices.ContainsFunc(q.hosts, func(h *Host) bool { return h.Known == known && able(h) })
}

// HelpersFit reports whether a machine has room for a new allocation to the helpers of a
// suite in place of their present one. If not, the reason says what is missing. It
// allocates nothing.
func (q *schedulingQueue) HelpersFit(node, suite string, memory units.Bytes, cpus int64) Reason {
	h := q.host(node)
	if h == nil || !h.Known {
		return Reason{}
	}
	then := h.clone()
	then.Helpers = slices.DeleteFunc(then.Helpers, func(o HelpersShare) bool { return o.Suite == suite })
	then.settle()
	free := then.free()
	switch {
	case memory > h.Memory:
		return Reason{Code: ReasonTooMuchHost, Need: memory, Of: h.Memory}
	case cpus > h.CPUs:
		return Reason{Code: ReasonTooManyCPUs, More: int(cpus), Limit: int(h.CPUs)}
	case memory == 0 && cpus == 0:
		return Reason{}
	case h.short():
		return Reason{Code: ReasonHostLow, Have: h.Available, Of: h.Total}
	case q.head.Host != nil && q.head.Host.Node == node && q.tasks[q.head.Task] != nil:
		return Reason{Code: ReasonHostKept, Task: q.head.Task}
	case memory > free:
		return Reason{Code: ReasonHostMemory, Have: max(0, free), Need: memory, Of: h.Memory, Helpers: then.helpers}
	case cpus > 0 && cpus > h.CPUs-then.CPUsBooked:
		return Reason{Code: ReasonHostCPUs, More: int(cpus), Count: int(then.CPUsBooked), Limit: int(h.CPUs)}
	}
	return Reason{}
}
