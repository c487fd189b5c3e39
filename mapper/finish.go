package mapper

import "carma/mapper/model"

func (s *State) cancel(ev model.Cancel) {
	t, asked := s.TaskByID(ev.Task), model.Reason{Code: model.ReasonAsked, Text: ev.Reason}
	switch {
	case t != nil && (t.SlotUsed || t.Overuse || t.Moving || t.Recall != nil): // it is stopping already, and must not run again
		t.SlotUsed, t.Overuse, t.Moving, t.Recall, t.StopReason = false, false, false, nil, asked
		t.TimedOut = ev.Failed
	case t == nil || t.Phase == model.Stopping:
	case t.Phase == model.Suspended && t.StopReason.Code != "": // it is stopping already
	case t.Phase == model.Suspended:
		t.TimedOut = ev.Failed
		s.stopSuspended(t, asked)
	case t.Phase.Placed():
		t.TimedOut = ev.Failed
		s.preempter.Stop(t, asked)
	default:
		if t.Phase == model.Queued || t.Phase == model.Recovering {
			s.queue.Remove(t)
			s.queue.LeaveBacklog(t)
			s.preempter.ClearNominations(t)
			s.users.Dequeued(t)
			s.MarkDirty()
		}
		phase := model.Cancelled
		if ev.Failed {
			phase = model.Failed
		}
		s.finish(t, phase, 0, asked)
	}
}

// stopSuspended stops a suspended task. It stays suspended until its container has ended.
func (s *State) stopSuspended(t *model.Task, reason model.Reason) {
	if t.Waiting() {
		s.dequeue(t)
		s.MarkDirty()
	}
	t.StopReason = reason
	s.Decide(model.Stop{Task: t.ID, Attempt: t.Last().N, Reason: reason})
}

func (s *State) finish(t *model.Task, phase model.Phase, code int, reason model.Reason) {
	if fate := s.Recorded().End(t.ID); fate != nil {
		s.meet(t, fate)
		return
	}
	s.end(t, phase, code, reason)
}

// end does the work of finish.
func (s *State) end(t *model.Task, phase model.Phase, code int, reason model.Reason) {
	was := t.Phase
	t.Phase, t.Ended, t.Code, t.Reason = phase, s.Now(), code, reason
	s.RemoveTask(t)
	s.breakers.TaskEnded(t.ID)
	s.queue.LeaveGroup(t, was)
	s.step.endings = append(s.step.endings, ending{t.ID, phase, t.HasStarted(), t.Group})
	s.reserve.DropHead(t.ID)
	s.Decide(model.Finish{Task: *t})
}
