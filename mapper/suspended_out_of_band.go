package mapper

import (
	"carma/mapper/model"
	"carma/mapper/preempt"
)

// suspendedOutOfBand records the suspension without a check whether the driver could
// suspend the task now and whether there is host memory. The answer to its decision says
// whether it is suspended after all.
func (s *State) suspendedOutOfBand(ev model.SuspendedOutOfBand) {
	t := s.TaskByID(ev.Task)
	if t == nil || t.Phase != model.Running || t.Last().N != ev.Attempt || t.GPUs == 0 || t.GPUs > 1 && !ev.Left {
		return
	}
	why := model.Reason{Code: model.ReasonFoundAway}
	what := preempt.SuspensionFor(why, s.SuspendableOn(t))
	what.InPlace = ev.Left
	s.preempter.SuspendAs(t, what, why)
}
