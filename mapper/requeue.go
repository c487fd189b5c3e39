package mapper

import "carma/mapper/model"

// requeueEnded requeues a task whose attempt was stopped for that.
func (s *State) requeueEnded(t *model.Task, a *model.Attempt) {
	reason, recall := t.StopReason, t.Recall
	a.NotAtFault = true
	t.Recall, t.StopReason = nil, model.Reason{}
	s.lifecycle.Requeue(t, model.Queued, reason)
	if recall.Hold && s.TaskByID(t.ID) == t && !t.Phase.Placed() {
		s.lifecycle.Hold(t, recall.By, recall.Why)
	}
}
