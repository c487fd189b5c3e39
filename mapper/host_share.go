package mapper

import (
	"slices"

	"carma/internal/units"
	"carma/mapper/model"
)

// Tasks without a request share all of a machine's memory except one part in
// defaultParts. That part is for tasks that want more, and for tasks without a GPU.
// leastHost is the least that one task gets, except on machines with less than hostParts
// times leastHost. bareHost is the most for a task without a GPU.
const (
	defaultParts = 4
	leastHost    = units.GiB
	hostParts    = 16
	bareHost     = 8 * units.GiB
	// bareCPUs and leastWeight are thousandths of a processor.
	bareCPUs    = 1000
	leastWeight = 100
)

// hostShare returns the allocation of a task on a machine if it were launched now: its
// request, else the use by earlier runs of its kind, else the part that goes with its
// GPUs. A task without a memory request may use more than its allocation, up to the
// unallocated memory.
func (l *ledger) hostShare(t *model.Task, h *model.Host) model.HostShare {
	share := model.HostShare{Node: h.Node}
	if !h.Known {
		return share
	}
	part, gpus := l.partOf(t, h.Node)
	left := max(0, h.Memory-h.HelpersMemory())
	share.Limit = t.HostMem
	switch {
	case t.HostReserve > 0 && t.HostOOMs == 0:
		share.Memory = t.HostReserve
	case t.HostReserve > 0:
		share.Memory = max(t.HostReserve, t.NextHostGrant)
	case t.HostMem > 0:
		share.Memory = t.HostMem
	case t.NextHostGrant > 0:
		share.Memory = min(t.NextHostGrant, h.MaxMemory())
	case gpus == 0:
		share.Memory = min(h.Memory/hostParts, bareHost, h.MaxMemory())
	default:
		all := left - left/defaultParts
		share.Memory = min(max(all.Scale(part/float64(gpus)), min(leastHost, h.Memory/hostParts)), h.MaxMemory())
	}
	if share.Limit == 0 {
		share.Limit = min(max(share.Memory, h.Memory-h.TakenMemory()), h.MaxMemory())
		if h.Limit > 0 {
			share.Limit = min(share.Limit, max(h.Limit, share.Memory))
		}
	}
	switch {
	case t.CPUs > 0:
		share.CPUs, share.Weight = t.CPUs, t.CPUs
	case t.GPUs == 0:
		share.CPUs, share.Weight = min(bareCPUs, h.CPUs), bareCPUs
	default:
		share.Weight = max(leastWeight, int64(float64(h.CPUs)*part/float64(max(gpus, 1))))
	}
	return share
}

// partOf returns how many of a machine's GPUs a task gets, as a number with a fraction,
// and how many there are. Both are 0 if it gets none.
func (l *ledger) partOf(t *model.Task, node string) (part float64, gpus int) {
	if t.GPUs == 0 {
		return 0, 0
	}
	var first *model.GPU
	for _, g := range l.gpus {
		if g.Node == node {
			if gpus++; first == nil {
				first = g
			}
		}
	}
	if first == nil {
		return 0, 0
	}
	part = 1
	if !l.alone(t) && first.Capacity > 0 {
		part = min(1, float64(t.NextGrant)/float64(first.Capacity))
	}
	return part * float64(t.GPUs), gpus
}

// hostFits reports whether a machine has host memory and processors for a task. If not,
// the reason says what is missing. A suspended task already has its allocation.
func (q *schedulingQueue) hostFits(t *model.Task, h *model.Host) (model.HostShare, model.Reason) {
	if t.Phase == model.Suspended {
		return model.HostShare{}, model.Reason{}
	}
	share := q.hostShare(t, h)
	free := h.FreeMemory()
	switch {
	case q.hostReservedAgainst(t, h):
		return share, model.Reason{Code: model.ReasonHostKept, Task: q.head.Task}
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
func (q *schedulingQueue) hostFor(t *model.Task) (best *model.Host, no model.Reason) {
	if len(q.hosts) == 0 {
		return &model.Host{}, model.Reason{}
	}
	known := slices.ContainsFunc(q.hosts, func(h *model.Host) bool { return h.Known })
	for _, h := range q.hosts {
		if h.Known != known {
			continue
		}
		if _, why := q.hostFits(t, h); why.Code != "" {
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
func (q *schedulingQueue) nodeFits(t *model.Task, node string) bool {
	h := q.host(node)
	if h == nil {
		return true
	}
	_, no := q.hostFits(t, h)
	return no.Code == ""
}

// whereHostFits drops the GPUs of machines that lack host memory or processors for a
// task. all reports whether it dropped none.
func (q *schedulingQueue) whereHostFits(t *model.Task, gpus []*model.GPU) (fitting []*model.GPU, all bool) {
	if len(q.hosts) == 0 {
		return gpus, true
	}
	node, fits, n := "", true, len(gpus)
	fitting = gpus[:0]
	for i, g := range gpus {
		if i == 0 || g.Node != node {
			node, fits = g.Node, q.nodeFits(t, g.Node)
		}
		if fits {
			fitting = append(fitting, g)
		}
	}
	return fitting, len(fitting) == n
}

// hostShort says why no machine has host memory and processors for a task, or returns the
// zero Reason if one has.
func (q *schedulingQueue) hostShort(t *model.Task) (no model.Reason) {
	if t.GPUs == 0 {
		_, no = q.hostFor(t)
		return no
	}
	if len(q.hosts) == 0 {
		return model.Reason{}
	}
	node := ""
	for i, g := range q.gpus {
		if i > 0 && g.Node == node {
			continue
		}
		node = g.Node
		h := q.host(node)
		if h == nil {
			return model.Reason{}
		}
		_, why := q.hostFits(t, h)
		if why.Code == "" {
			return why
		}
		if no.Code == "" {
			no = why
		}
	}
	return no
}

// hostCanFit reports whether a task would fit if nothing else ran. A suspended task
// already has its allocation.
func (l *ledger) hostCanFit(t *model.Task) bool {
	if len(l.hosts) == 0 || t.Phase == model.Suspended || t.HostRequest() == 0 && t.CPUs == 0 {
		return true
	}
	able := func(h *model.Host) bool { return !h.Known || t.HostRequest() <= h.MaxMemory() && t.CPUs <= h.CPUs }
	if t.GPUs > 0 {
		return slices.ContainsFunc(l.gpus, func(g *model.GPU) bool { h := l.host(g.Node); return h == nil || able(h) })
	}
	known := slices.ContainsFunc(l.hosts, func(h *model.Host) bool { return h.Known })
	return slices.ContainsFunc(l.hosts, func(h *model.Host) bool { return h.Known == known && able(h) })
}
