package mapper

import (
	"slices"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
)

// A task can be suspended without ending it: its container is frozen, and its GPU memory
// is kept in host memory. It resumes on the same GPU, or on another of the same kind if
// the driver can move it.
//
//	running -> suspending -> suspended -> resuming -> running
//
// While it is suspending its memory stays allocated on the GPU, and the memory of a
// resuming task is allocated from the decision on. A suspended task holds nothing there.
// It waits before all tasks of its priority, or until somebody asks to resume it. In all
// three phases it may end, and may be stopped.

// CannotSuspend says why a task cannot be suspended now, or returns the zero Reason.
func (l *ledger) CannotSuspend(id model.TaskID) model.Reason {
	t := l.tasks[id]
	if t == nil || t.Phase != model.Running || t.GPUs == 0 {
		return model.Reason{Code: model.ReasonNotRunning}
	}
	if no := l.driverCannot(t); no.Code != "" && !t.Last().Leaves {
		return no
	}
	g := l.byID[t.Current().Grants[0].GPU]
	need := l.onGPUs(t)
	if h := l.host(g.Node); h != nil && h.Known && h.FreeMemory()+l.lends(t) < need {
		return model.Reason{Code: model.ReasonHostFull, Need: need, Have: max(0, h.FreeMemory()+l.lends(t))}
	}
	return model.Reason{}
}

// driverCannot says why the driver cannot suspend a running task, or returns the zero
// Reason.
func (l *ledger) driverCannot(t *model.Task) model.Reason {
	g := l.byID[t.Current().Grants[0].GPU]
	switch {
	case t.GPUs > 1:
		return model.Reason{Code: model.ReasonSeveralGPUs, Count: t.GPUs}
	case g.Suspend == model.SuspendNever || g.Missing:
		return model.Reason{Code: model.ReasonCannotSuspend, GPU: g.Index}
	case g.SuspendAlone && !t.NextExclusive:
		return model.Reason{Code: model.ReasonMPSClient, GPU: g.Index}
	}
	return model.Reason{}
}

// onGPUs returns the GPU memory that a running task uses: its observed memory, or its
// grant if that was not observed.
func (l *ledger) onGPUs(t *model.Task) (sum units.Bytes) {
	for _, grant := range t.Current().Grants {
		if r := l.byID[grant.GPU].Resident(t.ID); r.Peak > 0 {
			sum += max(r.Used, r.Peak)
		} else {
			sum += r.Grant
		}
	}
	return sum
}

func (pre *preempter) suspendAsked(ev model.SuspendAsked) {
	t := pre.tasks[ev.Task]
	if pre.CannotSuspend(ev.Task).Code != "" {
		return
	}
	why := model.Reason{Code: model.ReasonSuspended, Name: ev.By, Text: ev.Why}
	pre.suspend(t, suspensionFor(why, pre.onGPUs(t)), why)
}

// suspend suspends a running task.
func (pre *preempter) suspend(t *model.Task, what model.Suspension, why model.Reason) {
	what.InPlace = t.VacatesFor(why)
	pre.suspendAs(t, what, why)
}

// suspendAs suspends a running task by the method in what.InPlace.
func (pre *preempter) suspendAs(t *model.Task, what model.Suspension, why model.Reason) {
	if !pre.recorded.maySuspend(t.ID, why) {
		return
	}
	what.Lent = pre.lends(t)
	pre.beginSuspension(t, what)
	pre.decide(model.Suspend{Task: t.ID, Attempt: t.Last().N, Host: what.Host, Lent: what.Lent, Reason: why, Leave: what.InPlace})
}

// beginSuspension begins a suspension: the task does no work from now on.
func (pre *preempter) beginSuspension(t *model.Task, what model.Suspension) {
	pre.predictor.progress(t)
	t.Phase, t.Suspension = model.Suspending, &what
	pre.bookSuspendedMemory(t)
	for _, grant := range t.Current().Grants {
		pre.placer.pace([]*model.GPU{pre.byID[grant.GPU]})
	}
}

// bookSuspendedMemory allocates host memory for the GPU memory of a suspended task.
func (l *ledger) bookSuspendedMemory(t *model.Task) {
	h := l.host(t.Last().Host.Node)
	if h == nil {
		return
	}
	if r := h.Resident(t.ID); r != nil {
		free := h.FreeMemory()
		r.SuspendedMemory, r.Lent = t.SuspendedMemory(), t.LentMemory()
		h.Settle()
		l.dirty = l.dirty || h.FreeMemory() > free // others may have what it lends
	}
}

// lends returns the part of a task's host memory that others may use while it is
// suspended: of an allocation that it did not request, the part it was not seen to use.
// When it resumes it gets this part back, even if that exceeds what is free then.
func (l *ledger) lends(t *model.Task) units.Bytes {
	h := l.host(t.Last().Host.Node)
	if h == nil || t.HostRequest() > 0 {
		return 0
	}
	r := h.Resident(t.ID)
	if r == nil || r.Peak == 0 {
		return 0
	}
	return max(0, r.Memory-max(r.Peak, leastHost))
}

// hostHolds reports whether a machine has host memory for a task and for the GPU memory
// of its victims. The memory that the victims lend counts as free.
func (q *schedulingQueue) hostHolds(t *model.Task, h *model.Host, victims ...*model.Task) bool {
	share, no := q.hostFits(t, h)
	if no.Code != "" && (no.Code != model.ReasonHostMemory || share.Memory > h.MaxMemory() || share.CPUs > 0 && share.CPUs > h.CPUs-h.CPUsBooked) {
		return false
	}
	sum := share.Memory
	for _, v := range victims {
		sum += q.onGPUs(v) - q.lends(v)
	}
	return sum <= h.FreeMemory()
}

// suspendedTime returns the total time for which the current attempt has been suspended.
func (l *ledger) suspendedTime(t *model.Task) time.Duration { return t.SuspendedBy(l.now) }

// suspended handles the answer to [model.Suspend].
func (s *State) suspended(ev model.SuspendDone) {
	t := s.tasks[ev.Task]
	if t == nil || t.Phase != model.Suspending || t.Last().N != ev.Attempt {
		return
	}
	if ev.Failure != "" {
		why := t.Suspension.Reason
		t.Reason, t.Last().Stays = model.Reason{Code: model.ReasonNotSuspended, Text: ev.Failure}, true
		s.preempter.backRunning(t)
		s.preempter.keepRunning(t, why)
		return
	}
	a, away := t.Current(), t.Suspension
	t.ClearReason(model.ReasonNotSuspended)
	for _, grant := range a.Grants {
		a.Peak = max(a.Peak, s.byID[grant.GPU].Resident(t.ID).Peak)
	}
	s.holdsAgain(t)
	s.preempter.onSuspended(t, away.Reason)
	s.users.vacate(t)
	for _, grant := range a.Grants {
		s.takeOff(s.byID[grant.GPU], t.ID)
	}
	t.Phase, away.Since, away.From = model.Suspended, s.now, slices.Clone(a.Grants)
	s.addResidue(t)
	s.dirty = true
	if away.Preemptor() != 0 {
		s.at(s.now.Add(wayBack), timer{})
	}
	if t.Waiting() {
		s.enqueue(t, model.Suspended)
	}
}

// forceSuspend repeats a recorded suspension.
func (s *State) forceSuspend(t *model.Task, d model.Suspend) {
	if t.Phase != model.Running || t.Last().N != d.Attempt {
		return
	}
	what := suspensionFor(d.Reason, d.Host)
	what.Lent, what.InPlace = d.Lent, d.Leave
	if f := s.tasks[what.Preemptor()]; s.opt.Preempts() && f != nil && f.Waiting() {
		for _, grant := range t.Current().Grants[:min(t.GPUs, f.GPUs)] {
			if g := s.byID[grant.GPU]; g.NominatedFor == 0 && s.resumeTargets(f, g) {
				g.NominatedFor, f.WayAt = f.ID, s.now
			}
		}
	}
	s.preempter.beginSuspension(t, what)
}
