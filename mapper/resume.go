package mapper

import (
	"slices"

	"carma/mapper/ledger"
	"carma/mapper/model"
)

// resume places a suspended task, which has already left its queue, on GPUs.
func (s *State) resume(t *model.Task, gpus []*model.GPU, grants []model.Grant, alone bool) {
	a := t.Last()
	from := make([]model.GPUID, len(t.Suspension.From))
	for i, grant := range t.Suspension.From {
		from[i] = grant.GPU
	}
	a.Grants, a.Fills = grants, 0 // it no longer backfills
	t.Phase, t.PacedAt, t.NotBefore, t.BlockedAt, t.Seat = model.Resuming, s.Now(), 0, 0, nil
	s.placer.Retry(t)
	s.takesAll(t)
	s.placer.AddResident(t, gpus, grants, alone)
	s.queue.LeaveBacklog(t)
	s.preempter.ClearNominations(t)
	s.users.Dequeued(t)
	s.users.Occupy(t)
	s.predictor.TasksChanged(gpus)
	s.placer.MarkLaunched(gpus)
	s.reserve.DropHead(t.ID)
	s.Decide(model.Resume{Task: t.ID, Attempt: a.N, From: from, Grants: slices.Clone(grants), Alone: alone})
}

// resumed handles the answer to [model.Resume].
func (s *State) resumed(ev model.Resumed) {
	t := s.TaskByID(ev.Task)
	if t == nil || t.Phase != model.Resuming || t.Last().N != ev.Attempt {
		return
	}
	if ev.Failure != "" {
		s.notResumed(t, ev.Failure)
		return
	}
	a := t.Current()
	t.ClearReason(model.ReasonNotResumed)
	s.preempter.SetRunning(t)
	for _, grant := range a.Grants {
		g := s.GPU(grant.GPU)
		g.ChangedAt = s.Now()
		g.InvalidateForecast()
		g.Resident(t.ID).WarmUntil = s.Now().Add(s.Ledger.Options().WarmUp)
		g.Settle()
		s.preempter.CheckActivity(g)
	}
	s.SetTimer(s.Now().Add(s.Ledger.Options().WarmUp), ledger.Timer{})
	s.preempter.SetPreemptionTimers(t)
}

// notResumed removes a task from the GPUs on which it could not resume. It tries again,
// with growing delays.
func (s *State) notResumed(t *model.Task, failure string) {
	a, away := t.Current(), t.Suspension
	s.users.Release(t)
	for _, grant := range a.Grants {
		s.takeOff(s.GPU(grant.GPU), t.ID)
	}
	away.Failures++
	a.Grants = slices.Clone(away.From)
	s.addResidue(t)
	t.Reason = model.Reason{Code: model.ReasonNotResumed, Count: away.Failures, Text: failure}
	t.NotBefore = s.Now().Add(s.Ledger.Options().Backoff << min(away.Failures-1, maxBackoffDoublings))
	s.lifecycle.Enqueue(t, model.Suspended)
}

// exitedWhileSuspended handles the end of an attempt that was suspended.
func (s *State) exitedWhileSuspended(t *model.Task, ev model.Exited) {
	a := t.Last()
	if ev.Class == model.ExitGPUOOM || ev.Class == model.ExitSuspectedOOM {
		ev.Class = model.ExitInfrastructure // it had no GPU to run out of
	}
	if t.Waiting() {
		s.lifecycle.Dequeue(t)
	}
	s.takesAll(t)
	t.Phase = model.Running
	if t.StopReason.Code != "" {
		t.Phase = model.Stopping
	}
	s.unsuspend(t, a)
	s.learner.EndAttempt(t, a, ev)
	a.Peak, a.HostPeak = max(a.Peak, ev.Peak.Clamp()), ev.HostPeak.Clamp()
	s.ReleaseHost(t, a)
	if ev.Class == model.ExitOK {
		s.learner.LearnRun(t, a)
	} else {
		s.learner.LearnFloor(t, a.Peak)
	}
	s.MarkDirty()
	held := s.lifecycle.HoldAfter(t, ev)
	t.Hold = nil
	s.settleEnd(t, a, ev, oomAttribution{})
	s.lifecycle.HoldAgain(t, held)
}

// unsuspend ends the suspension of an attempt that ends, and records its duration.
func (s *State) unsuspend(t *model.Task, a *model.Attempt) {
	away := t.Suspension
	if away == nil {
		return
	}
	if away.Since > 0 {
		s.preempter.RecordSuspension(a, away)
	}
	t.Suspension = nil
	for _, from := range away.From {
		if g := s.GPU(from.GPU); g != nil {
			s.placer.ForgetMissing(g)
		}
	}
}

// forceResume repeats a recorded resumption.
func (s *State) forceResume(t *model.Task, d model.Resume) {
	if t.Phase != model.Suspended || t.Last().N != d.Attempt || len(d.Grants) != t.GPUs {
		return
	}
	if !t.Waiting() {
		t.Suspension.Automatic, t.Hold = true, nil
		s.lifecycle.Enqueue(t, model.Suspended)
	}
	s.lifecycle.Dequeue(t)
	s.users.Enqueued(t) // resume decrements it
	gpus := make([]*model.GPU, len(d.Grants))
	for i, grant := range d.Grants {
		gpus[i] = s.page(grant)
	}
	s.resume(t, gpus, slices.Clone(d.Grants), d.Alone)
	for _, g := range gpus {
		g.Bookable = max(g.Bookable, g.Reserved)
	}
}
