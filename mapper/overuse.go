package mapper

import "carma/mapper/model"

// stoppedForOveruse handles the end of an attempt that was stopped for overuse, as after
// a GPU OOM of its own.
func (s *State) stoppedForOveruse(t *model.Task, a *model.Attempt) {
	reason := t.StopReason
	t.Overuse, t.StopReason = false, model.Reason{}
	if reason.StopCode() == model.ReasonHostOveruse || len(a.Grants) == 0 {
		s.hostOverrun(t, a, a.Code, reason)
		return
	}
	grant := a.Grants[0].Memory
	for _, g := range a.Grants {
		grant = min(grant, g.Memory)
	}
	s.recoverOOM(t, a, oomAttribution{own: true, demand: max(a.Peak, grant), most: s.MostFor(t.GPUs), reason: reason})
}
