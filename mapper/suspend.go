package mapper

import (
	"slices"

	"carma/mapper/ledger"
	"carma/mapper/model"
	"carma/mapper/preempt"
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

// suspended handles the answer to [model.Suspend].
func (s *State) suspended(ev model.SuspendDone) {
	t := s.TaskByID(ev.Task)
	if t == nil || t.Phase != model.Suspending || t.Last().N != ev.Attempt {
		return
	}
	if ev.Failure != "" {
		why := t.Suspension.Reason
		t.Reason, t.Last().Stays = model.Reason{Code: model.ReasonNotSuspended, Text: ev.Failure}, true
		s.preempter.SetRunning(t)
		s.preempter.SuspensionFailed(t, why)
		return
	}
	a, away := t.Current(), t.Suspension
	t.ClearReason(model.ReasonNotSuspended)
	for _, grant := range a.Grants {
		a.Peak = max(a.Peak, s.GPU(grant.GPU).Resident(t.ID).Peak)
	}
	s.HoldsAgain(t)
	s.preempter.OnSuspended(t, away.Reason)
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
		s.lifecycle.Enqueue(t, model.Suspended)
	}
}

// forceSuspend repeats a recorded suspension.
func (s *State) forceSuspend(t *model.Task, d model.Suspend) {
	if t.Phase != model.Running || t.Last().N != d.Attempt {
		return
	}
	what := preempt.SuspensionFor(d.Reason, d.Host)
	what.Lent, what.InPlace = d.Lent, d.Leave
	if f := s.TaskByID(what.Preemptor()); s.Ledger.Options().Preempts() && f != nil && f.Waiting() {
		for _, grant := range t.Current().Grants[:min(t.GPUs, f.GPUs)] {
			if g := s.GPU(grant.GPU); g.NominatedFor == 0 && s.ResumeTargets(f, g) {
				g.NominatedFor, f.WayAt = f.ID, s.Now()
			}
		}
	}
	s.preempter.BeginSuspension(t, what)
}
