package mapper

import (
	"cmp"
	"slices"

	"carma/internal/units"
	"carma/mapper/model"
)

func (s *State) helpersBooked(ev model.HelpersBooked) {
	h := s.OpenHost(ev.Node)
	memory, cpus := ev.Memory.Clamp(), max(0, min(ev.CPUs, model.MostCPUs))
	i, there := slices.BinarySearchFunc(h.Helpers, ev.Suite, func(a model.HelpersShare, name string) int { return cmp.Compare(a.Suite, name) })
	switch gone := memory == 0 && cpus == 0; {
	case there && gone:
		h.Helpers = slices.Delete(h.Helpers, i, i+1)
	case there:
		h.Helpers[i].Memory, h.Helpers[i].CPUs = memory, cpus
	case !gone:
		h.Helpers = slices.Insert(h.Helpers, i, model.HelpersShare{Suite: ev.Suite, Memory: memory, CPUs: cpus})
	}
	h.Settle()
	s.CloseHosts()
	s.MarkDirty()
}

// helpersBar reports whether no machine could take a task even if no other ran, because
// the helpers of suites have too much. Helpers may stay for weeks, so nothing is reserved
// for such a task.
func (rs *reservations) helpersBar(t *model.Task) bool {
	if t.Phase == model.Suspended || !slices.ContainsFunc(rs.HostList(), func(h *model.Host) bool { return len(h.Helpers) > 0 }) {
		return false // a suspended task already has its allocation
	}
	able := func(h *model.Host) bool {
		memory, cpus := h.WithoutHelpers()
		share := rs.HostShareOf(t, h)
		return !h.Known || share.Memory <= memory && (share.CPUs == 0 || share.CPUs <= cpus)
	}
	if t.GPUs > 0 {
		return !slices.ContainsFunc(rs.GPUList(), func(g *model.GPU) bool { h := rs.Host(g.Node); return h == nil || able(h) })
	}
	known := slices.ContainsFunc(rs.HostList(), func(h *model.Host) bool { return h.Known })
	return !slices.ContainsFunc(rs.HostList(), func(h *model.Host) bool { return h.Known == known && able(h) })
}

// HelpersFit reports whether a machine has room for a new allocation to the helpers of a
// suite in place of their present one. If not, the reason says what is missing. It
// allocates nothing.
func (rs *reservations) HelpersFit(node, suite string, memory units.Bytes, cpus int64) model.Reason {
	h := rs.Host(node)
	if h == nil || !h.Known {
		return model.Reason{}
	}
	then := h.Clone()
	then.Helpers = slices.DeleteFunc(then.Helpers, func(o model.HelpersShare) bool { return o.Suite == suite })
	then.Settle()
	free := then.FreeMemory()
	switch {
	case memory > h.Memory:
		return model.Reason{Code: model.ReasonTooMuchHost, Need: memory, Of: h.Memory}
	case cpus > h.CPUs:
		return model.Reason{Code: model.ReasonTooManyCPUs, More: int(cpus), Limit: int(h.CPUs)}
	case memory == 0 && cpus == 0:
		return model.Reason{}
	case h.Short():
		return model.Reason{Code: model.ReasonHostLow, Have: h.Available, Of: h.Total}
	case rs.head.Host != nil && rs.head.Host.Node == node && rs.TaskByID(rs.head.Task) != nil:
		return model.Reason{Code: model.ReasonHostKept, Task: rs.head.Task}
	case memory > free:
		return model.Reason{Code: model.ReasonHostMemory, Have: max(0, free), Need: memory, Of: h.Memory, Helpers: then.HelpersMemory()}
	case cpus > 0 && cpus > h.CPUs-then.CPUsBooked:
		return model.Reason{Code: model.ReasonHostCPUs, More: int(cpus), Count: int(then.CPUsBooked), Limit: int(h.CPUs)}
	}
	return model.Reason{}
}
