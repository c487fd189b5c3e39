package attempt

import (
	"slices"

	"carma/mapper/ledger"
	"carma/mapper/model"
)

// applyResume places a suspended task, which has already left its queue, on GPUs.
func (at *Attempts) applyResume(t *model.Task, gpus []*model.GPU, d model.Resume) {
	a := t.Last()
	a.Grants, a.Fills = slices.Clone(d.Grants), 0 // it no longer backfills
	t.Phase, t.PacedAt, t.NotBefore, t.BlockedAt, t.Seat = model.Resuming, at.Now(), 0, 0, nil
	at.placer.Retry(t)
	at.DropResidue(t)
	at.placer.AddResident(t, gpus, a.Grants, d.Alone)
	at.queue.LeaveBacklog(t)
	at.preempter.ClearNominations(t)
	at.users.Dequeued(t)
	at.users.Occupy(t)
	at.predictor.TasksChanged(gpus)
	at.placer.MarkLaunched(gpus)
	at.reserve.DropHead(t.ID)
	at.Decide(d)
}

// Resumed handles the answer to [model.Resume].
func (at *Attempts) Resumed(ev model.Resumed) {
	t := at.TaskByID(ev.Task)
	if t == nil || t.Phase != model.Resuming || t.Last().N != ev.Attempt {
		return
	}
	if ev.Failure != "" {
		at.notResumed(t, ev.Failure)
		return
	}
	a := t.Current()
	t.ClearReason(model.ReasonNotResumed)
	at.preempter.SetRunning(t)
	for _, grant := range a.Grants {
		g := at.GPU(grant.GPU)
		g.ChangedAt = at.Now()
		g.InvalidateForecast()
		g.Resident(t.ID).WarmUntil = at.Now().Add(at.Options().WarmUp)
		g.Settle()
		at.preempter.CheckActivity(g)
	}
	at.SetTimer(at.Now().Add(at.Options().WarmUp), ledger.Timer{})
	at.preempter.SetPreemptionTimers(t)
}

// notResumed removes a task from the GPUs on which it could not resume. It tries again,
// with growing delays.
func (at *Attempts) notResumed(t *model.Task, failure string) {
	a, suspension := t.Current(), t.Suspension
	at.users.Release(t)
	for _, grant := range a.Grants {
		at.RemoveFrom(at.GPU(grant.GPU), t.ID)
	}
	suspension.Failures++
	a.Grants = slices.Clone(suspension.From)
	at.addResidue(t)
	t.Reason = model.Reason{Code: model.ReasonNotResumed, Count: suspension.Failures, Text: failure}
	t.NotBefore = at.Now().Add(at.Backoff(suspension.Failures))
	at.lifecycle.Enqueue(t, model.Suspended)
}

// EndSuspension ends the suspension of an attempt that ends, and records its duration.
func (at *Attempts) EndSuspension(t *model.Task, a *model.Attempt) {
	suspension := t.Suspension
	if suspension == nil {
		return
	}
	if suspension.Since > 0 {
		at.preempter.RecordSuspension(a, suspension)
	}
	t.Suspension = nil
	for _, from := range suspension.From {
		if g := at.GPU(from.GPU); g != nil {
			at.placer.ForgetMissing(g)
		}
	}
}

// ApplyResume resumes a task as recorded, even if its grants exceed what is free now.
func (at *Attempts) ApplyResume(t *model.Task, d model.Resume) {
	if t.Phase != model.Suspended || t.Last().N != d.Attempt || len(d.Grants) != t.GPUs {
		return
	}
	if !t.Waiting() {
		t.Suspension.Automatic, t.Hold = true, nil
		at.lifecycle.Enqueue(t, model.Suspended)
	}
	at.lifecycle.Dequeue(t)
	at.users.Enqueued(t) // applyResume decrements it
	gpus := make([]*model.GPU, len(d.Grants))
	for i, grant := range d.Grants {
		gpus[i] = at.page(grant)
	}
	at.applyResume(t, gpus, d)
	for _, g := range gpus {
		g.Bookable = max(g.Bookable, g.Reserved)
	}
}
