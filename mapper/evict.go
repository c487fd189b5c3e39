package mapper

import "carma/mapper/model"

// evicted requeues a task after its attempt was stopped for slowing others down.
func (s *State) evicted(t *model.Task, a *model.Attempt) {
	reason := t.StopReason
	a.NotAtFault = true
	t.Moving, t.StopReason = false, model.Reason{}
	t.Evictions++
	s.lifecycle.Requeue(t, model.Recovering, reason)
}
