package mapper

import "slices"

// Resize changes the allocation of a running attempt on its machine, and with it the
// limits of its container.
type Resize struct {
	Task    TaskID    `json:"task"`
	Attempt int       `json:"attempt"`
	Host    HostShare `json:"host,omitzero"`
}

func (Resize) decisionKind() string { return "resize" }

// ReasonHostInUse: a running task uses Have of host memory, more than the new limit Of.
const ReasonHostInUse ReasonCode = "host-in-use"

// Resizable reports whether a launching or running task can be resized. A stopping task
// needs no new allocation, and the allocation of a suspended one includes its GPU memory.
func (t *Task) Resizable() bool {
	return t.StopReason.Code == "" && (t.Phase == Launching || t.Phase == Running)
}

// CannotResize says why a running task cannot have another allocation on its machine. It
// returns the zero Reason if it can, or if it does not run.
func (q *schedulingQueue) CannotResize(id TaskID, ask HostAsk) Reason {
	t := q.tasks[id]
	if t == nil || !t.Resizable() {
		return Reason{}
	}
	_, no := q.otherShare(t, ask)
	return no
}

// node returns the machine of a placed task.
func (l *ledger) node(t *Task) string {
	if a := t.Current(); len(a.Grants) > 0 && a.Host == (HostShare{}) {
		return l.byID[a.Grants[0].GPU].Node
	}
	return t.Current().Host.Node
}

// otherShare returns the allocation that a running task would have if it had requested
// ask at its launch. Unchanged parts stay as they are. The reason says why the allocation
// is not possible: the machine has too little, or the task uses more memory now.
func (q *schedulingQueue) otherShare(t *Task, ask HostAsk) (HostShare, Reason) {
	was, h := t.Current().Host, q.host(q.node(t))
	if h == nil || !h.Known {
		return HostShare{Node: was.Node}, Reason{}
	}
	then := h.clone()
	then.Residents = slices.DeleteFunc(then.Residents, func(r HostResident) bool { return r.Task == t.ID })
	then.settle()
	wants := *t
	wants.HostMem, wants.HostReserve, wants.CPUs = ask.Memory, ask.Reserve, ask.CPUs
	wants.shape()
	share := q.hostShare(&wants, then)
	if was.Memory > 0 && wants.HostMem == t.HostMem && wants.HostReserve == t.HostReserve {
		share.Memory, share.Limit = was.Memory, was.Limit
	}
	if was.Weight > 0 && wants.CPUs == t.CPUs {
		share.CPUs, share.Weight = was.CPUs, was.Weight
	}
	var r HostResident
	if has := h.resident(t.ID); has != nil {
		r = *has
	}
	return share, q.lacksFor(t, h, r, share)
}

// lacksFor says why a task cannot have a new allocation on a machine in place of its
// present one.
func (q *schedulingQueue) lacksFor(t *Task, h *Host, r HostResident, share HostShare) Reason {
	more := max(share.Memory, r.Used) - max(r.Memory, r.Used)
	switch {
	case share.Limit < r.Used:
		return Reason{Code: ReasonHostInUse, Have: r.Used, Of: share.Limit}
	case share.Memory > h.most() && share.Memory > r.Memory:
		return Reason{Code: ReasonTooMuchHost, Need: share.Memory, Of: h.most()}
	case more > 0 && q.hostReservedAgainst(t, h):
		return Reason{Code: ReasonHostKept, Task: q.head.Task}
	case more > 0 && more > h.free():
		return Reason{Code: ReasonHostMemory, Need: share.Memory, Have: max(r.Memory, r.Used) + max(0, h.free()), Of: h.Memory, Helpers: h.helpers}
	case share.CPUs > r.CPUs && share.CPUs-r.CPUs > h.CPUs-h.CPUsBooked:
		return Reason{Code: ReasonHostCPUs, More: int(share.CPUs), Count: int(h.CPUsBooked - r.CPUs), Limit: int(h.CPUs)}
	}
	return Reason{}
}

// resize changes the allocation of a running task if its machine has room. Otherwise
// nothing changes.
func (s *State) resize(t *Task, ask HostAsk) {
	share, no := s.queue.otherShare(t, ask)
	if s.recorded != nil {
		i := s.recorded.find(Resize{}.decisionKind(), t.ID)
		if i < 0 {
			return
		}
		share, no = s.recorded.left[i].(Resize).Host, Reason{}
	}
	if no.Code != "" {
		return
	}
	t.HostMem, t.HostReserve, t.CPUs = ask.Memory, ask.Reserve, ask.CPUs
	t.Request.shape()
	s.users.rebookHost(t, share)
	s.decide(Resize{Task: t.ID, Attempt: t.Current().N, Host: share})
}

// rebookHost replaces the allocation of a running task on its machine.
func (us *users) rebookHost(t *Task, share HostShare) {
	a := t.Current()
	if t.GPUs == 0 {
		us.vacate(t)
		defer us.occupy(t)
	}
	was := a.Host
	a.Host, a.Resized, us.dirty = share, true, true
	h := us.host(was.Node)
	if h == nil || h.resident(t.ID) == nil {
		us.settleIn(t, share)
		return
	}
	r := h.resident(t.ID)
	r.Memory, r.CPUs = share.Memory, share.CPUs
	h.settle()
}
