package mapper

import "carma/mapper/model"

// suspendedOutOfBand records the suspension without a check whether the driver could
// suspend the task now and whether there is host memory. The answer to its decision says
// whether it is suspended after all.
func (s *State) suspendedOutOfBand(ev model.SuspendedOutOfBand) {
	t := s.TaskByID(ev.Task)
	if t == nil || t.Phase != model.Running || t.Last().N != ev.Attempt || t.GPUs == 0 || t.GPUs > 1 && !ev.Left {
		return
	}
	why := model.Reason{Code: model.ReasonFoundAway}
	what := suspensionFor(why, s.SuspendableOn(t))
	what.InPlace = ev.Left
	s.preempter.suspendAs(t, what, why)
}
