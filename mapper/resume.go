package mapper

import (
	"cmp"
	"slices"

	"carma/internal/units"
)

// backRunning sets a task running that has resumed or could not be suspended.
func (pre *preempter) backRunning(t *Task) {
	a, why := t.Current(), t.Suspension.Reason
	if since := t.Suspension.Since; since > 0 {
		pre.recordSuspension(a, t.Suspension)
		pre.onResumed(a, why)
	}
	if t.Suspension.preemptor() != 0 {
		t.forgets(why.Code)
	}
	t.Phase, t.Suspension, t.Hold, t.Idle, t.PacedAt = Running, nil, nil, Idleness{Touched: t.Idle.Touched}, max(t.PacedAt, pre.now)
	pre.bookSuspendedMemory(t)
	pre.dirty = true
	if ends := pre.slotEnds(t); ends != units.Never {
		pre.at(max(ends, pre.now), timer{})
	}
	if t.TimeLimit > 0 {
		pre.at(max(pre.limitEnds(t), pre.now), timer{Task: t.ID, Attempt: a.N})
	}
	for _, grant := range a.Grants { // it has a load again
		pre.placer.predict([]*GPU{pre.byID[grant.GPU]})
	}
	mover := ""
	if why.Code == ReasonMoved {
		mover = why.Name
	}
	pre.evictPinned(t, mover) // to the GPUs to which it was pinned meanwhile
}

func (s *State) resumeAsked(ev ResumeAsked) {
	if t := s.tasks[ev.Task]; t != nil {
		s.resumeFitting(t)
	}
}

// resumeFitting lets a suspended task resume when there is room.
func (s *State) resumeFitting(t *Task) {
	if t.Suspension == nil || t.Suspension.Automatic || t.StopReason.Code != "" {
		return
	}
	t.Suspension.Automatic = true
	if t.waiting() {
		s.enqueue(t, Suspended)
	}
}

// resumeTargets reports whether a task may resume on a GPU; a task that is not suspended
// may use any.
func (l *ledger) resumeTargets(t *Task, g *GPU) bool {
	if t.Phase != Suspended {
		return true
	}
	if t.Suspension.has(g.ID) || t.Suspension.InPlace {
		return t.Suspension.has(g.ID)
	}
	had := l.byID[t.Suspension.From[0].GPU]
	return had != nil && g.Suspend == SuspendMove && g.Model != "" && g.Model == had.Model && g.Node == had.Node && g.Capacity >= had.Capacity && !g.MIG && !had.MIG
}

// ComesBackTo reports whether a suspended task may resume on a GPU.
func (l *ledger) ComesBackTo(id TaskID, gpu GPUID) bool {
	t, g := l.tasks[id], l.byID[gpu]
	return t != nil && g != nil && t.Phase == Suspended && l.resumeTargets(t, g)
}

// resume places a suspended task, which has already left its queue, on GPUs.
func (s *State) resume(t *Task, gpus []*GPU, grants []Grant, alone bool) {
	a := t.Last()
	from := make([]GPUID, len(t.Suspension.From))
	for i, grant := range t.Suspension.From {
		from[i] = grant.GPU
	}
	a.Grants, a.Fills = grants, 0 // it no longer backfills
	t.Phase, t.PacedAt, t.NotBefore, t.BlockedAt, t.Seat = Resuming, s.now, 0, 0, nil
	s.placer.retry(t)
	s.takesAll(t)
	s.placer.addResident(t, gpus, grants, alone)
	s.queue.onDequeue(t)
	s.preempter.clearNominations(t)
	s.users.of(t.userAccount()).waiting--
	s.users.occupy(t)
	s.placer.pace(gpus)
	s.placer.markLaunched(gpus)
	if s.queue.head.Task == t.ID {
		s.queue.head = headReservation{}
	}
	s.decide(Resume{Task: t.ID, Attempt: a.N, From: from, Grants: slices.Clone(grants), Alone: alone})
}

// resumed handles the answer to [Resume].
func (s *State) resumed(ev Resumed) {
	t := s.tasks[ev.Task]
	if t == nil || t.Phase != Resuming || t.Last().N != ev.Attempt {
		return
	}
	if ev.Failure != "" {
		s.notResumed(t, ev.Failure)
		return
	}
	a := t.Current()
	t.forgets(ReasonNotResumed)
	s.preempter.backRunning(t)
	for _, grant := range a.Grants {
		g := s.byID[grant.GPU]
		g.ChangedAt = s.now
		g.forget()
		g.resident(t.ID).WarmUntil = s.now.Add(s.opt.WarmUp)
		g.settle()
		s.preempter.checkIdle(g)
	}
	s.at(s.now.Add(s.opt.WarmUp), timer{})
	s.preempter.notePreemptible(t)
}

// forgets clears a reason that no longer applies.
func (t *Task) forgets(code ReasonCode) {
	if t.Reason.Code == code {
		t.Reason = Reason{}
	}
}

// notResumed removes a task from the GPUs on which it could not resume. It tries again,
// with growing delays.
func (s *State) notResumed(t *Task, failure string) {
	a, away := t.Current(), t.Suspension
	s.users.vacate(t)
	for _, grant := range a.Grants {
		s.takeOff(s.byID[grant.GPU], t.ID)
	}
	away.Failures++
	a.Grants = slices.Clone(away.From)
	s.addResidue(t)
	t.Reason = Reason{Code: ReasonNotResumed, Count: away.Failures, Text: failure}
	t.NotBefore = s.now.Add(s.opt.Backoff << min(away.Failures-1, maxBackoffDoublings))
	s.enqueue(t, Suspended)
}

// exitedWhileSuspended handles the end of an attempt that was suspended.
func (s *State) exitedWhileSuspended(t *Task, ev Exited) {
	a := t.Last()
	if ev.Class == ExitGPUOOM || ev.Class == ExitSuspectedOOM {
		ev.Class = ExitInfrastructure // it had no GPU to run out of
	}
	if t.waiting() {
		s.dequeue(t)
	}
	s.takesAll(t)
	t.Phase = Running
	if t.StopReason.Code != "" {
		t.Phase = Stopping
	}
	s.unsuspend(t, a)
	s.learner.endAttempt(t, a, ev)
	a.Peak, a.HostPeak = max(a.Peak, ev.Peak.Clamp()), ev.HostPeak.Clamp()
	s.moveOut(t, a)
	if ev.Class == ExitOK {
		s.learner.learn(t, a)
	} else {
		s.learner.learnFloor(t, a.Peak)
	}
	s.dirty = true
	held := s.heldAfter(t, ev)
	t.Hold = nil
	s.settleEnd(t, a, ev, oomAttribution{})
	s.holdAgain(t, held)
}

// unsuspend ends the suspension of an attempt that ends, and records its duration.
func (s *State) unsuspend(t *Task, a *Attempt) {
	away := t.Suspension
	if away == nil {
		return
	}
	if away.Since > 0 {
		s.recordSuspension(a, away)
	}
	t.Suspension = nil
	for _, from := range away.From {
		if g := s.byID[from.GPU]; g != nil {
			s.placer.forgetMissing(g)
		}
	}
}

// forceResume repeats a recorded resumption.
func (s *State) forceResume(t *Task, d Resume) {
	if t.Phase != Suspended || t.Last().N != d.Attempt || len(d.Grants) != t.GPUs {
		return
	}
	if !t.waiting() {
		t.Suspension.Automatic, t.Hold = true, nil
		s.enqueue(t, Suspended)
	}
	s.dequeue(t)
	s.users.make(t.userAccount()).waiting++ // resume decrements it
	gpus := make([]*GPU, len(d.Grants))
	for i, grant := range d.Grants {
		gpus[i] = s.page(grant)
	}
	s.resume(t, gpus, slices.Clone(d.Grants), d.Alone)
	for _, g := range gpus {
		g.Bookable = max(g.Bookable, g.Reserved)
	}
}

// limitEnds returns the end of the time limit of a running attempt. Suspended time does
// not count.
func (l *ledger) limitEnds(t *Task) units.Instant {
	a := t.Last()
	return cmp.Or(a.Started, l.now).Add(a.SuspendedTime).Add(t.TimeLimit)
}
