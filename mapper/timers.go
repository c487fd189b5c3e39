package mapper

import "carma/mapper/model"

// expire handles all timers that are due.
func (s *State) expire() {
	for d, due := s.PopTimer(); due; d, due = s.PopTimer() {
		s.MarkDirty()
		s.reopen()
		if s.IsDelay(d) {
			s.lifecycle.DelayEnded(s.TaskByID(d.Task))
		} else if s.IsIdleCheck(d) {
			s.preempter.HandleIdle(s.TaskByID(d.Task))
		} else if s.IsTimeLimit(d) {
			t := s.TaskByID(d.Task)
			if !s.preempter.Stop(t, model.Reason{Code: model.ReasonTimeLimit, Span: t.TimeLimit}) {
				s.SetTimer(s.Now().Add(1), d) // it was not stopped then, see Resolve
			}
		}
	}
}
