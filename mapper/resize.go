package mapper

import (
	"slices"

	"carma/mapper/model"
)

// CannotResize says why a running task cannot have another allocation on its machine. It
// returns the zero Reason if it can, or if it does not run.
func (rs *reservations) CannotResize(id model.TaskID, ask model.HostAsk) model.Reason {
	t := rs.TaskByID(id)
	if t == nil || !t.Resizable() {
		return model.Reason{}
	}
	_, no := rs.otherShare(t, ask)
	return no
}

// node returns the machine of a placed task.
func (rs *reservations) node(t *model.Task) string {
	if a := t.Current(); len(a.Grants) > 0 && a.Host == (model.HostShare{}) {
		return rs.GPU(a.Grants[0].GPU).Node
	}
	return t.Current().Host.Node
}

// otherShare returns the allocation that a running task would have if it had requested
// ask at its launch. Unchanged parts stay as they are. The reason says why the allocation
// is not possible: the machine has too little, or the task uses more memory now.
func (rs *reservations) otherShare(t *model.Task, ask model.HostAsk) (model.HostShare, model.Reason) {
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
func (rs *reservations) lacksFor(t *model.Task, h *model.Host, r model.HostResident, share model.HostShare) model.Reason {
	more := max(share.Memory, r.Used) - max(r.Memory, r.Used)
	switch {
	case share.Limit < r.Used:
		return model.Reason{Code: model.ReasonHostInUse, Have: r.Used, Of: share.Limit}
	case share.Memory > h.MaxMemory() && share.Memory > r.Memory:
		return model.Reason{Code: model.ReasonTooMuchHost, Need: share.Memory, Of: h.MaxMemory()}
	case more > 0 && rs.hostReservedAgainst(t, h):
		return model.Reason{Code: model.ReasonHostKept, Task: rs.head.Task}
	case more > 0 && more > h.FreeMemory():
		return model.Reason{Code: model.ReasonHostMemory, Need: share.Memory, Have: max(r.Memory, r.Used) + max(0, h.FreeMemory()), Of: h.Memory, Helpers: h.HelpersMemory()}
	case share.CPUs > r.CPUs && share.CPUs-r.CPUs > h.CPUs-h.CPUsBooked:
		return model.Reason{Code: model.ReasonHostCPUs, More: int(share.CPUs), Count: int(h.CPUsBooked - r.CPUs), Limit: int(h.CPUs)}
	}
	return model.Reason{}
}

// resize changes the allocation of a running task if its machine has room. Otherwise
// nothing changes.
func (s *State) resize(t *model.Task, ask model.HostAsk) {
	share, no := s.reserve.otherShare(t, ask)
	if s.Recorded() != nil {
		d, ok := s.Recorded().Resize(t.ID)
		if !ok {
			return
		}
		share, no = d.Host, model.Reason{}
	}
	if no.Code != "" {
		return
	}
	t.HostMem, t.HostReserve, t.CPUs = ask.Memory, ask.Reserve, ask.CPUs
	t.Request.Normalize()
	s.users.RebookHost(t, share)
	s.Decide(model.Resize{Task: t.ID, Attempt: t.Current().N, Host: share})
}
