package mapper

import (
	"carma/mapper/model"
)

func (s *State) terminalInput(ev model.TerminalInput) {
	t := s.TaskByID(ev.Task)
	if t == nil || t.Alive() == nil {
		return
	}
	if t.Current() != nil {
		t.Idle.Touched = max(s.Now(), 1)
		s.preempter.UpdateIdle(t)
	}
	if t.Suspension != nil && t.Suspension.Reason.Code == model.ReasonIdle {
		s.resumeFitting(t) // a user is back
	}
}
