package attempt

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

// SuspendDone handles the answer to [model.Suspend].
func (at *Attempts) SuspendDone(ev model.SuspendDone) {
	t := at.TaskByID(ev.Task)
	if t == nil || t.Phase != model.Suspending || t.Last().N != ev.Attempt {
		return
	}
	if ev.Failure != "" {
		why := t.Suspension.Reason
		t.Reason, t.Last().Stays = model.Reason{Code: model.ReasonNotSuspended, Text: ev.Failure}, true
		at.preempter.SetRunning(t)
		at.preempter.SuspensionFailed(t, why)
		return
	}
	a, suspension := t.Current(), t.Suspension
	t.ClearReason(model.ReasonNotSuspended)
	for _, grant := range a.Grants {
		a.Peak = max(a.Peak, at.GPU(grant.GPU).Resident(t.ID).Peak)
	}
	at.HoldsAgain(t)
	at.preempter.OnSuspended(t, suspension.Reason)
	at.users.Release(t)
	for _, grant := range a.Grants {
		at.RemoveFrom(at.GPU(grant.GPU), t.ID)
	}
	t.Phase, suspension.Since, suspension.From = model.Suspended, at.Now(), slices.Clone(a.Grants)
	at.addResidue(t)
	at.MarkDirty()
	if suspension.Preemptor() != 0 {
		at.SetTimer(at.Now().Add(ledger.SuspendedTooLongAfter), ledger.Timer{})
	}
	if t.Waiting() {
		at.lifecycle.Enqueue(t, model.Suspended)
	}
}

// ApplySuspend suspends a task as recorded. A task for which it was suspended is nominated.
func (at *Attempts) ApplySuspend(t *model.Task, d model.Suspend) {
	if t.Phase != model.Running || t.Last().N != d.Attempt {
		return
	}
	what := preempt.SuspensionFor(d.Reason, d.Host)
	if f := at.TaskByID(what.Preemptor()); at.Options().Preempts() && f != nil && f.Waiting() {
		for _, grant := range t.Current().Grants[:min(t.GPUs, f.GPUs)] {
			if g := at.GPU(grant.GPU); g.NominatedFor == 0 && at.ResumeTargets(f, g) {
				g.NominatedFor, f.WayAt = f.ID, at.Now()
			}
		}
	}
	at.preempter.ApplySuspend(t, d)
}

// SuspendedOutOfBand records the suspension without a check whether the driver could
// suspend the task now and whether there is host memory. The answer to its decision says
// whether it is suspended after all.
func (at *Attempts) SuspendedOutOfBand(ev model.SuspendedOutOfBand) {
	t := at.TaskByID(ev.Task)
	if t == nil || t.Phase != model.Running || t.Last().N != ev.Attempt || t.GPUs == 0 || t.GPUs > 1 && !ev.Left {
		return
	}
	at.preempter.Suspend(t, model.Reason{Code: model.ReasonFoundAway}, ev.Left)
}
