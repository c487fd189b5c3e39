package mapper

import "carma/mapper/model"

func (s *State) requeueRequested(ev model.RequeueRequested) {
	t := s.TaskByID(ev.Task)
	if t == nil || t.Alive() == nil || t.StopReason.Code != "" {
		return
	}
	t.Recall = &model.PendingRequeue{Hold: ev.Hold, By: ev.By, Why: ev.Why}
	why := model.Reason{Code: model.ReasonRecalled, Name: ev.By, Text: ev.Why}
	switch {
	case t.Phase != model.Suspended:
		s.preempter.Stop(t, why)
	case s.Recorded().MayStop(t.ID, why):
		s.stopSuspended(t, why)
	default:
		s.preempter.CancelStop(t)
	}
}

// requeueEnded requeues a task whose attempt was stopped for that.
func (s *State) requeueEnded(t *model.Task, a *model.Attempt) {
	reason, recall := t.StopReason, t.Recall
	a.NotAtFault = true
	t.Recall, t.StopReason = nil, model.Reason{}
	s.requeue(t, model.Queued, reason)
	if recall.Hold && s.TaskByID(t.ID) == t && !t.Phase.Placed() {
		s.hold(t, recall.By, recall.Why)
	}
}
