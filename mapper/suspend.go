package mapper

import (
	"slices"
	"time"

	"carma/mapper/ledger"
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

func (pre *preempter) suspendAsked(ev model.SuspendAsked) {
	t := pre.TaskByID(ev.Task)
	if pre.CannotSuspend(ev.Task).Code != "" {
		return
	}
	why := model.Reason{Code: model.ReasonSuspended, Name: ev.By, Text: ev.Why}
	pre.suspend(t, suspensionFor(why, pre.SuspendableOn(t)), why)
}

// suspend suspends a running task.
func (pre *preempter) suspend(t *model.Task, what model.Suspension, why model.Reason) {
	what.InPlace = t.VacatesFor(why)
	pre.suspendAs(t, what, why)
}

// suspendAs suspends a running task by the method in what.InPlace.
func (pre *preempter) suspendAs(t *model.Task, what model.Suspension, why model.Reason) {
	if !pre.Recorded().MaySuspend(t.ID, why) {
		return
	}
	what.Lent = pre.LendsMemory(t)
	pre.beginSuspension(t, what)
	pre.Decide(model.Suspend{Task: t.ID, Attempt: t.Last().N, Host: what.Host, Lent: what.Lent, Reason: why, Leave: what.InPlace})
}

// beginSuspension begins a suspension: the task does no work from now on.
func (pre *preempter) beginSuspension(t *model.Task, what model.Suspension) {
	pre.predictor.UpdateWork(t)
	t.Phase, t.Suspension = model.Suspending, &what
	pre.bookSuspendedMemory(t)
	for _, grant := range t.Current().Grants {
		pre.predictor.TasksChanged([]*model.GPU{pre.GPU(grant.GPU)})
	}
}

// bookSuspendedMemory allocates host memory for the GPU memory of a suspended task.
func (pre *preempter) bookSuspendedMemory(t *model.Task) {
	h := pre.Host(t.Last().Host.Node)
	if h == nil {
		return
	}
	if r := h.Resident(t.ID); r != nil {
		free := h.FreeMemory()
		r.SuspendedMemory, r.Lent = t.SuspendedMemory(), t.LentMemory()
		h.Settle()
		if h.FreeMemory() > free { // others may have what it lends
			pre.MarkDirty()
		}
	}
}

// suspendedTime returns the total time for which the current attempt has been suspended.
func (pre *preempter) suspendedTime(t *model.Task) time.Duration { return t.SuspendedBy(pre.Now()) }

// suspended handles the answer to [model.Suspend].
func (s *State) suspended(ev model.SuspendDone) {
	t := s.TaskByID(ev.Task)
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
		a.Peak = max(a.Peak, s.GPU(grant.GPU).Resident(t.ID).Peak)
	}
	s.HoldsAgain(t)
	s.preempter.onSuspended(t, away.Reason)
	s.users.Release(t)
	for _, grant := range a.Grants {
		s.takeOff(s.GPU(grant.GPU), t.ID)
	}
	t.Phase, away.Since, away.From = model.Suspended, s.Now(), slices.Clone(a.Grants)
	s.addResidue(t)
	s.MarkDirty()
	if away.Preemptor() != 0 {
		s.SetTimer(s.Now().Add(ledger.SuspendedTooLongAfter), ledger.Timer{})
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
	if f := s.TaskByID(what.Preemptor()); s.Ledger.Options().Preempts() && f != nil && f.Waiting() {
		for _, grant := range t.Current().Grants[:min(t.GPUs, f.GPUs)] {
			if g := s.GPU(grant.GPU); g.NominatedFor == 0 && s.ResumeTargets(f, g) {
				g.NominatedFor, f.WayAt = f.ID, s.Now()
			}
		}
	}
	s.preempter.beginSuspension(t, what)
}
