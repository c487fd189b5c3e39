package mapper

import (
	"slices"

	"carma/mapper/model"
)

// hostFits reports whether a machine has host memory and processors for a task. If not,
// the reason says what is missing. A suspended task already has its allocation.
func (rs *reservations) hostFits(t *model.Task, h *model.Host) (model.HostShare, model.Reason) {
	if t.Phase == model.Suspended {
		return model.HostShare{}, model.Reason{}
	}
	share := rs.HostShareOf(t, h)
	free := h.FreeMemory()
	switch {
	case rs.hostReservedAgainst(t, h):
		return share, model.Reason{Code: model.ReasonHostKept, Task: rs.head.Task}
	case !h.Known:
		return share, model.Reason{}
	case h.Short():
		return share, model.Reason{Code: model.ReasonHostLow, Have: h.Available, Of: h.Total}
	case share.Memory > h.MaxMemory():
		return share, model.Reason{Code: model.ReasonHostMemory, Have: h.MaxMemory(), Need: share.Memory, Of: h.Memory}
	case share.Memory > free:
		return share, model.Reason{Code: model.ReasonHostMemory, Have: max(0, free), Need: share.Memory, Of: h.Memory, Helpers: h.HelpersMemory()}
	case share.CPUs > 0 && share.CPUs > h.CPUs-h.CPUsBooked:
		return share, model.Reason{Code: model.ReasonHostCPUs, More: int(share.CPUs), Count: int(h.CPUsBooked), Limit: int(h.CPUs)}
	}
	return share, model.Reason{}
}

// hostFor returns the machine for a task without a GPU: the one with the most free
// memory. If there is none, the reason says why.
func (rs *reservations) hostFor(t *model.Task) (best *model.Host, no model.Reason) {
	if len(rs.HostList()) == 0 {
		return &model.Host{}, model.Reason{}
	}
	known := slices.ContainsFunc(rs.HostList(), func(h *model.Host) bool { return h.Known })
	for _, h := range rs.HostList() {
		if h.Known != known {
			continue
		}
		if _, why := rs.hostFits(t, h); why.Code != "" {
			if no.Code == "" {
				no = why
			}
		} else if best == nil || h.FreeMemory() > best.FreeMemory() {
			best = h
		}
	}
	if best != nil {
		no = model.Reason{}
	}
	return best, no
}

// nodeFits reports whether the machine of a GPU has host memory and processors for
// a task.
func (rs *reservations) nodeFits(t *model.Task, node string) bool {
	h := rs.Host(node)
	if h == nil {
		return true
	}
	_, no := rs.hostFits(t, h)
	return no.Code == ""
}

// whereHostFits drops the GPUs of machines that lack host memory or processors for a
// task. all reports whether it dropped none.
func (rs *reservations) whereHostFits(t *model.Task, gpus []*model.GPU) (fitting []*model.GPU, all bool) {
	if len(rs.HostList()) == 0 {
		return gpus, true
	}
	node, fits, n := "", true, len(gpus)
	fitting = gpus[:0]
	for i, g := range gpus {
		if i == 0 || g.Node != node {
			node, fits = g.Node, rs.nodeFits(t, g.Node)
		}
		if fits {
			fitting = append(fitting, g)
		}
	}
	return fitting, len(fitting) == n
}

// hostShort says why no machine has host memory and processors for a task, or returns the
// zero Reason if one has.
func (rs *reservations) hostShort(t *model.Task) (no model.Reason) {
	if t.GPUs == 0 {
		_, no = rs.hostFor(t)
		return no
	}
	if len(rs.HostList()) == 0 {
		return model.Reason{}
	}
	node := ""
	for i, g := range rs.GPUList() {
		if i > 0 && g.Node == node {
			continue
		}
		node = g.Node
		h := rs.Host(node)
		if h == nil {
			return model.Reason{}
		}
		_, why := rs.hostFits(t, h)
		if why.Code == "" {
			return why
		}
		if no.Code == "" {
			no = why
		}
	}
	return no
}
