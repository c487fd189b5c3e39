package mapper

import "carma/mapper/model"

// exitedWhileSuspended handles the end of an attempt that was suspended.
func (s *State) exitedWhileSuspended(t *model.Task, ev model.Exited) {
	a := t.Last()
	if ev.Class == model.ExitGPUOOM || ev.Class == model.ExitSuspectedOOM {
		ev.Class = model.ExitInfrastructure // it had no GPU to run out of
	}
	if t.Waiting() {
		s.lifecycle.Dequeue(t)
	}
	s.attempts.DropResidue(t)
	t.Phase = model.Running
	if t.StopReason.Code != "" {
		t.Phase = model.Stopping
	}
	s.attempts.EndSuspension(t, a)
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
