package mapper

import (
	"carma/mapper/ledger"
	"carma/mapper/model"
)

// Apply applies ev with the decisions that were recorded for it, regardless of what this
// program would decide. With it an upgraded daemon takes over what the older program has
// already carried out.
//
// It applies the event as [State.Step] does. Where a part decides about a task, the
// recorded decision takes effect, see [ledger.Ledger.Resolve]. The remaining recorded
// decisions, above all launches, are applied at the end, without a check whether they
// fit. The queues are not scheduled; the next Step does that.
func (s *State) Apply(ev model.Event, decided []model.Decision) {
	s.SetRecorded(decided)
	defer s.ClearRecorded()
	s.take(ev)
	if s.paused == nil {
		s.scheduler.updateGrants()
	}
	for d := s.NextRecorded(); d != nil; d = s.NextRecorded() {
		s.apply(d)
	}
	s.lifecycle.FollowUp()
	s.ClearDecisions()
	s.MarkDirty()
}

// apply applies a recorded decision to which the event did not lead.
func (s *State) apply(d model.Decision) {
	if d, ok := d.(model.SetTimer); ok {
		s.SetWake(d.At)
		return
	}
	t := s.TaskByID(ledger.Subject(d))
	if t == nil {
		return
	}
	switch d := d.(type) {
	case model.Launch:
		s.attempts.ApplyLaunch(t, d)
	case model.Stop:
		s.attempts.ApplyStop(t, d)
	case model.GrantChanged:
		s.attempts.ApplyGrants(t, d)
	case model.Suspend:
		s.attempts.ApplySuspend(t, d)
	case model.Resume:
		s.attempts.ApplyResume(t, d)
	case model.Release:
		s.lifecycle.ApplyRelease(t)
	case model.Finish, model.Requeue:
		s.attempts.Detach(t)
		s.lifecycle.ApplyEnd(t, d, s.Now())
	}
}
