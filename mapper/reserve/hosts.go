package reserve

import (
	"slices"

	"carma/internal/units"
	"carma/mapper/model"
)

// HostLack says what a task lacks on its machine although GPUs, fits, would take it.
func (rs *Reservations) HostLack(t *model.Task, fits []model.GPUID) model.Reason {
	no := rs.HostShort(t)
	for i := 0; no.Code == "" && i < len(fits); i++ {
		if h := rs.Host(rs.GPU(fits[i]).Node); h != nil {
			_, no = rs.hostFits(t, h)
		}
	}
	return no
}

// HostShareAt returns the allocation of a launch on its machine.
func (rs *Reservations) HostShareAt(t *model.Task, gpus []*model.GPU) model.HostShare {
	if t.GPUs == 0 {
		h, _ := rs.HostFor(t)
		return rs.HostShareOf(t, h)
	}
	h := rs.Host(gpus[0].Node)
	if h == nil || !h.Known {
		return model.HostShare{}
	}
	return rs.HostShareOf(t, h)
}

// helpersBar reports whether no machine could take a task even if no other ran, because
// the helpers of suites have too much. Helpers may stay for weeks, so nothing is reserved
// for such a task.
func (rs *Reservations) helpersBar(t *model.Task) bool {
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
func (rs *Reservations) HelpersFit(node, suite string, memory units.Bytes, cpus int64) model.Reason {
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

// hostFits reports whether a machine has host memory and processors for a task. If not,
// the reason says what is missing. A suspended task already has its allocation.
func (rs *Reservations) hostFits(t *model.Task, h *model.Host) (model.HostShare, model.Reason) {
	if t.Phase == model.Suspended {
		return model.HostShare{}, model.Reason{}
	}
	share := rs.HostShareOf(t, h)
	free := h.FreeMemory()
	switch {
	case rs.HostReservedAgainst(t, h):
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

// HostFor returns the machine for a task without a GPU: the one with the most free
// memory. If there is none, the reason says why.
func (rs *Reservations) HostFor(t *model.Task) (best *model.Host, no model.Reason) {
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

// NodeFits reports whether the machine of a GPU has host memory and processors for
// a task.
func (rs *Reservations) NodeFits(t *model.Task, node string) bool {
	h := rs.Host(node)
	if h == nil {
		return true
	}
	_, no := rs.hostFits(t, h)
	return no.Code == ""
}

// WithHostRoom drops the GPUs of machines that lack host memory or processors for a
// task. all reports whether it dropped none.
func (rs *Reservations) WithHostRoom(t *model.Task, gpus []*model.GPU) (fitting []*model.GPU, all bool) {
	if len(rs.HostList()) == 0 {
		return gpus, true
	}
	node, fits, n := "", true, len(gpus)
	fitting = gpus[:0]
	for i, g := range gpus {
		if i == 0 || g.Node != node {
			node, fits = g.Node, rs.NodeFits(t, g.Node)
		}
		if fits {
			fitting = append(fitting, g)
		}
	}
	return fitting, len(fitting) == n
}

// HostShort says why no machine has host memory and processors for a task, or returns the
// zero Reason if one has.
func (rs *Reservations) HostShort(t *model.Task) (no model.Reason) {
	if t.GPUs == 0 {
		_, no = rs.HostFor(t)
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

// CannotResize says why a running task cannot have another allocation on its machine. It
// returns the zero Reason if it can, or if it does not run.
func (rs *Reservations) CannotResize(id model.TaskID, ask model.HostAsk) model.Reason {
	t := rs.TaskByID(id)
	if t == nil || !t.Resizable() {
		return model.Reason{}
	}
	_, no := rs.ResizedShare(t, ask)
	return no
}

// node returns the machine of a placed task.
func (rs *Reservations) node(t *model.Task) string {
	if a := t.Current(); len(a.Grants) > 0 && a.Host == (model.HostShare{}) {
		return rs.GPU(a.Grants[0].GPU).Node
	}
	return t.Current().Host.Node
}

// ResizedShare returns the allocation that a running task would have if it had requested
// ask at its launch. Unchanged parts stay as they are. The reason says why the allocation
// is not possible: the machine has too little, or the task uses more memory now.
func (rs *Reservations) ResizedShare(t *model.Task, ask model.HostAsk) (model.HostShare, model.Reason) {
	was, h := t.Current().Host, rs.Host(rs.node(t))
	if h == nil || !h.Known {
		return model.HostShare{Node: was.Node}, model.Reason{}
	}
	then := h.Clone()
	then.Residents = slices.DeleteFunc(then.Residents, func(r model.HostResident) bool { return r.Task == t.ID })
	then.Settle()
	wants := *t
	wants.HostMem, wants.HostReserve, wants.CPUs = ask.Memory, ask.Reserve, ask.CPUs
	wants.Normalize()
	share := rs.HostShareOf(&wants, then)
	if was.Memory > 0 && wants.HostMem == t.HostMem && wants.HostReserve == t.HostReserve {
		share.Memory, share.Limit = was.Memory, was.Limit
	}
	if was.Weight > 0 && wants.CPUs == t.CPUs {
		share.CPUs, share.Weight = was.CPUs, was.Weight
	}
	var r model.HostResident
	if has := h.Resident(t.ID); has != nil {
		r = *has
	}
	return share, rs.lacksFor(t, h, r, share)
}

// lacksFor says why a task cannot have a new allocation on a machine in place of its
// present one.
func (rs *Reservations) lacksFor(t *model.Task, h *model.Host, r model.HostResident, share model.HostShare) model.Reason {
	more := max(share.Memory, r.Used) - max(r.Memory, r.Used)
	switch {
	case share.Limit < r.Used:
		return model.Reason{Code: model.ReasonHostInUse, Have: r.Used, Of: share.Limit}
	case share.Memory > h.MaxMemory() && share.Memory > r.Memory:
		return model.Reason{Code: model.ReasonTooMuchHost, Need: share.Memory, Of: h.MaxMemory()}
	case more > 0 && rs.HostReservedAgainst(t, h):
		return model.Reason{Code: model.ReasonHostKept, Task: rs.head.Task}
	case more > 0 && more > h.FreeMemory():
		return model.Reason{Code: model.ReasonHostMemory, Need: share.Memory, Have: max(r.Memory, r.Used) + max(0, h.FreeMemory()), Of: h.Memory, Helpers: h.HelpersMemory()}
	case share.CPUs > r.CPUs && share.CPUs-r.CPUs > h.CPUs-h.CPUsBooked:
		return model.Reason{Code: model.ReasonHostCPUs, More: int(share.CPUs), Count: int(h.CPUsBooked - r.CPUs), Limit: int(h.CPUs)}
	}
	return model.Reason{}
}

// HostHolds reports whether a machine has host memory for a task and for the GPU memory
// of its victims. The memory that the victims lend counts as free.
func (rs *Reservations) HostHolds(t *model.Task, h *model.Host, victims ...*model.Task) bool {
	share, no := rs.hostFits(t, h)
	if no.Code != "" && (no.Code != model.ReasonHostMemory || share.Memory > h.MaxMemory() || share.CPUs > 0 && share.CPUs > h.CPUs-h.CPUsBooked) {
		return false
	}
	sum := share.Memory
	for _, v := range victims {
		sum += rs.SuspendableOn(v) - rs.LendsMemory(v)
	}
	return sum <= h.FreeMemory()
}

// HostAllows reports whether a task has host memory while a victim is suspended for it.
func (rs *Reservations) HostAllows(t, victim *model.Task) bool {
	h := rs.Host(victim.Last().Host.Node)
	if t.GPUs == 0 || h == nil || !h.Known {
		return t.GPUs > 0
	}
	return rs.HostHolds(t, h, victim)
}
