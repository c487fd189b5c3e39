package mapper

import "carma/mapper/model"

// slotOver requeues a task after its attempt was stopped for others.
func (s *State) slotOver(t *model.Task, a *model.Attempt) {
	reason := t.StopReason
	a.NotAtFault = true
	t.SlotUsed, t.StopReason = false, model.Reason{}
	s.queue.PutLast(t)
	s.lifecycle.Requeue(t, model.Queued, reason)
}
