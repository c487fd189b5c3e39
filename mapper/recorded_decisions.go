package mapper

import (
	"carma/mapper/ledger"
	"carma/mapper/model"
)

// Follow applies ev with the decisions that were recorded for it, regardless of what this
// program would decide. With it an upgraded daemon takes over what the older program has
// already carried out.
//
// It applies the event as [State.Step] does. Where that leads to a decision about a task,
// the recorded decision replaces it. A stop that was not recorded does not happen. The
// remaining recorded decisions, above all launches, are applied at the end, without a
// check whether they fit. The queues are not scheduled; the next Step does that.
func (s *State) Follow(ev model.Event, decided []model.Decision) {
	s.SetRecorded(decided)
	defer s.ClearRecorded()
	s.take(ev)
	if s.paused == nil {
		s.scheduler.updateGrants()
	}
	for d := s.Recorded().Next(); d != nil; d = s.Recorded().Next() {
		s.force(d)
	}
	s.lifecycle.FollowUp()
	s.ClearDecisions()
	s.MarkDirty()
}

// force applies a recorded decision that the event did not lead to.
func (s *State) force(d model.Decision) {
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
		s.attempts.ForceLaunch(t, d)
	case model.Stop:
		s.lifecycle.ForceStop(t, d)
	case model.GrantChanged:
		s.attempts.ForceGrants(t, d)
	case model.Suspend:
		s.attempts.ForceSuspend(t, d)
	case model.Resume:
		s.attempts.ForceResume(t, d)
	case model.Release:
		s.lifecycle.ForceRelease(t)
	case model.Finish, model.Requeue:
		s.attempts.Detach(t)
		s.lifecycle.ApplyRecordedEnd(t, d)
	}
}
