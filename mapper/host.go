package mapper

import (
	"cmp"
	"slices"

	"carma/internal/units"
)

// HostInfo describes the memory and processors of a machine that tasks may use. A machine
// without information has no limits.
type HostInfo struct {
	Node string `json:"node,omitempty"`
	// Total is the memory of the machine, Memory the part of it that all tasks together
	// may be allocated; the rest is for the system and the page cache.
	Total  units.Bytes `json:"total"`
	Memory units.Bytes `json:"memory"`
	// CPUs is the number of thousandths of a processor that all tasks together may be
	// allocated.
	CPUs int64 `json:"cpus"`
	// Most is the most that one task may be allocated, or 0 for all. Limit is the most
	// that a task without a request may use, or 0 for all unallocated memory.
	Most  units.Bytes `json:"most,omitempty"`
	Limit units.Bytes `json:"limit,omitempty"`
}

// HostsFound lists the memory and processors of the machines. A machine that is not in
// the list has no limits.
type HostsFound struct {
	At    units.Instant `json:"at"`
	Hosts []HostInfo    `json:"hosts"`
}

func (e HostsFound) when() units.Instant { return e.At }
func (HostsFound) kind() string          { return "hosts-found" }
func (HostsFound) about() TaskID         { return 0 }

// HostSample is the memory use of a machine and its tasks.
type HostSample struct {
	Node string `json:"node,omitempty"`
	// Available is the memory available without swapping, or 0 if not known.
	Available units.Bytes `json:"available,omitempty"`
	Tasks     []HostUse   `json:"tasks,omitempty"`
	// Helpers are the helpers of suites.
	Helpers []HelpersUse `json:"helpers,omitempty"`
}

// HostUse is the host memory that a task uses, without its page cache.
type HostUse struct {
	Task TaskID      `json:"task"`
	Used units.Bytes `json:"used"`
}

// HostShare is the allocation of an attempt on a machine. It is zero if the machine is
// not known.
type HostShare struct {
	Node   string      `json:"node,omitempty"`
	Memory units.Bytes `json:"memory,omitempty"`
	// Limit is the most memory that the container may use, or 0 if the host decides.
	Limit units.Bytes `json:"limit,omitempty"`
	// CPUs is the number of allocated thousandths of a processor. Weight is its share of
	// the processors when they are short, in the same unit.
	CPUs   int64 `json:"cpus,omitempty"`
	Weight int64 `json:"weight,omitempty"`
}

// Host is the ledger's entry for the memory and the processors of a machine.
//
// Invariant: at a launch, Booked <= Memory and CPUsBooked <= CPUs, helpers included.
type Host struct {
	HostInfo
	// Known: if false, only tasks without a GPU are listed here.
	Known bool `json:"known,omitempty"`
	// Available is from the last sample, or 0 if not known.
	Available units.Bytes    `json:"available,omitempty"`
	Residents []HostResident `json:"residents,omitempty"`
	// Helpers are the allocations for the helpers of suites, in order of suite.
	Helpers []HelpersShare `json:"helpers,omitempty"`

	// The sums over Residents and Helpers; settle computes them.
	Booked      units.Bytes `json:"-"`
	CPUsBooked  int64       `json:"-"`
	taken       units.Bytes // allocated, or used where that is more
	unused      units.Bytes // allocated and not used
	helpers     units.Bytes // taken by helpers
	helpersCPUs int64
}

// HostResident is the allocation of one task on a machine.
type HostResident struct {
	Task   TaskID      `json:"task"`
	Memory units.Bytes `json:"memory,omitempty"`
	CPUs   int64       `json:"cpus,omitempty"`
	Used   units.Bytes `json:"used,omitempty"` // last sample
	Peak   units.Bytes `json:"peak,omitempty"` // highest sample
	// SuspendedMemory is allocated for the GPU memory of a suspended task.
	SuspendedMemory units.Bytes `json:"away,omitempty"`
	// Lent is the part of Memory that others may use meanwhile.
	Lent units.Bytes `json:"lent,omitempty"`
	// Share is the charge to its user for a task without a GPU, in millionths of a GPU.
	Share int64 `json:"share,omitempty"`
}

func (h *Host) settle() {
	h.Booked, h.CPUsBooked, h.taken, h.unused, h.helpers, h.helpersCPUs = 0, 0, 0, 0, 0, 0
	for i := range h.Helpers {
		o := &h.Helpers[i]
		h.helpers += max(o.Memory, o.Used)
		h.helpersCPUs += o.CPUs
		h.Booked += o.Memory
		h.unused += max(0, o.Memory-o.Used)
	}
	h.CPUsBooked, h.taken = h.helpersCPUs, h.helpers
	for i := range h.Residents {
		r := &h.Residents[i]
		booked := r.Memory - r.Lent + r.SuspendedMemory
		h.Booked += booked
		h.CPUsBooked += r.CPUs
		h.taken += max(booked, r.Used)
		h.unused += max(0, booked-r.Used)
	}
}

func (h *Host) resident(id TaskID) *HostResident {
	for i := range h.Residents {
		if h.Residents[i].Task == id {
			return &h.Residents[i]
		}
	}
	return nil
}

func (h *Host) clone() *Host {
	c := *h
	c.Residents, c.Helpers = slices.Clone(h.Residents), slices.Clone(h.Helpers)
	return &c
}

// host returns the entry of a machine, or nil.
func (l *ledger) host(node string) *Host {
	for _, h := range l.hosts {
		if h.Node == node {
			return h
		}
	}
	return nil
}

// openHost returns the entry of a machine, and adds it if there is none.
func (l *ledger) openHost(node string) *Host {
	if h := l.host(node); h != nil {
		return h
	}
	h := &Host{HostInfo: HostInfo{Node: node}}
	l.hosts = append(l.hosts, h)
	slices.SortFunc(l.hosts, func(a, b *Host) int { return cmp.Compare(a.Node, b.Node) })
	return h
}

// closeHosts drops the entries without content.
func (l *ledger) closeHosts() {
	l.hosts = slices.DeleteFunc(l.hosts, func(h *Host) bool { return !h.Known && len(h.Residents)+len(h.Helpers) == 0 })
}

func (s *State) hostsFound(ev HostsFound) {
	for _, h := range s.hosts {
		h.HostInfo, h.Known, h.Available = HostInfo{Node: h.Node}, false, 0
	}
	for _, info := range ev.Hosts {
		info.Total, info.Memory, info.Most, info.Limit = info.Total.Clamp(), info.Memory.Clamp(), info.Most.Clamp(), info.Limit.Clamp()
		info.CPUs = max(0, min(info.CPUs, mostCPUs))
		h := s.openHost(info.Node)
		h.HostInfo, h.Known = info, true
	}
	s.closeHosts()
	s.dirty = true
}

// mostCPUs bounds the processors of a machine and of a task.
const mostCPUs = 1_000_000_000

// hostSampled stores the sampled memory use of the machines.
func (pre *preempter) hostSampled(samples []HostSample) {
	for i := range samples {
		in := &samples[i]
		h := pre.host(in.Node)
		if h == nil {
			continue
		}
		free := h.free()
		h.Available = in.Available.Clamp()
		for j := range h.Residents {
			h.Residents[j].Used = 0
		}
		for _, u := range in.Tasks {
			if r := h.resident(u.Task); r != nil {
				r.Used = u.Used.Clamp()
				r.Peak = max(r.Peak, r.Used)
			}
		}
		for j := range h.Helpers {
			h.Helpers[j].Used = 0
		}
		for _, u := range in.Helpers {
			if j := slices.IndexFunc(h.Helpers, func(o HelpersShare) bool { return o.Suite == u.Suite }); j >= 0 {
				h.Helpers[j].Used = u.Used.Clamp()
			}
		}
		h.settle()
		pre.dirty = pre.dirty || h.free() > free
		pre.guardHost(h)
	}
}

// low returns the available memory below which nothing more is launched, because the
// machine would begin to swap or to kill processes.
func (h *Host) low() units.Bytes { return min(h.Total/20, 8*units.GiB) }

// short reports whether the available memory of the machine is below low.
func (h *Host) short() bool { return h.Known && h.Available > 0 && h.Available < h.low() }

// free returns the memory that can be allocated. Memory used outside of tasks reduces
// what is available, and tasks may still use the rest of their allocations.
func (h *Host) free() units.Bytes {
	free := h.Memory - h.taken
	if h.Available > 0 {
		free = min(free, h.Available-h.low()-h.unused)
	}
	return free
}

// most returns the most memory that one task may be allocated.
func (h *Host) most() units.Bytes {
	if h.Most > 0 {
		return min(h.Most, h.Memory)
	}
	return h.Memory
}

// shareAt returns the allocation of a launch on its machine.
func (q *schedulingQueue) shareAt(t *Task, gpus []*GPU) HostShare {
	if t.GPUs == 0 {
		h, _ := q.hostFor(t)
		return q.hostShare(t, h)
	}
	h := q.host(gpus[0].Node)
	if h == nil || !h.Known {
		return HostShare{}
	}
	return q.hostShare(t, h)
}

// settleIn adds an attempt to the entry of its machine; moveOut removes it.
func (l *ledger) settleIn(t *Task, share HostShare) {
	if share == (HostShare{}) && t.GPUs > 0 {
		return
	}
	h := l.openHost(share.Node)
	h.Residents = append(h.Residents, HostResident{Task: t.ID, Memory: share.Memory, CPUs: share.CPUs})
	h.settle()
}

func (l *ledger) moveOut(t *Task, a *Attempt) {
	h := l.host(a.Host.Node)
	if h == nil {
		return
	}
	if r := h.resident(t.ID); r != nil {
		a.HostPeak = max(a.HostPeak, r.Peak)
		h.Residents = slices.DeleteFunc(h.Residents, func(r HostResident) bool { return r.Task == t.ID })
		h.settle()
		l.closeHosts()
	}
}

// bare returns the placed or suspended tasks without a GPU, in order of machine.
func (l *ledger) bare() (all []*Task) {
	for _, h := range l.hosts {
		for i := range h.Residents {
			if t := l.tasks[h.Residents[i].Task]; t.GPUs == 0 {
				all = append(all, t)
			}
		}
	}
	return all
}

// Hosts returns copies of the entries of the machines, in order.
func (l *ledger) Hosts() []Host {
	all := make([]Host, len(l.hosts))
	for i, h := range l.hosts {
		all[i] = *h.clone()
	}
	return all
}
