package mapper

func (s *State) cancel(ev Cancel) {
	t, asked := s.tasks[ev.Task], Reason{Code: ReasonAsked, Text: ev.Reason}
	switch {
	case t != nil && (t.SlotUsed || t.Overuse || t.Moving || t.Recall != nil): // it is stopping already, and must not run again
		t.SlotUsed, t.Overuse, t.Moving, t.Recall, t.StopReason = false, false, false, nil, asked
		t.TimedOut = ev.Failed
	case t == nil || t.Phase == Stopping:
	case t.Phase == Suspended && t.StopReason.Code != "": // it is stopping already
	case t.Phase == Suspended:
		t.TimedOut = ev.Failed
		s.stopSuspended(t, asked)
	case t.Phase.Placed():
		t.TimedOut = ev.Failed
		s.preempter.stop(t, asked)
	default:
		if t.Phase == Queued || t.Phase == Recovering {
			s.queue.waiting.remove(t)
			s.queue.onDequeue(t)
			s.preempter.clearNominations(t)
			s.users.make(t.userAccount()).waiting--
			s.dirty = true
		}
		phase := Cancelled
		if ev.Failed {
			phase = Failed
		}
		s.finish(t, phase, 0, asked)
	}
}

// stopSuspended stops a suspended task. It stays suspended until its container has ended.
func (s *State) stopSuspended(t *Task, reason Reason) {
	if t.waiting() {
		s.dequeue(t)
		s.dirty = true
	}
	t.StopReason = reason
	s.decide(Stop{Task: t.ID, Attempt: t.Last().N, Reason: reason})
}

func (pre *preempter) stop(t *Task, reason Reason) {
	if !pre.recorded.mayStop(t.ID, reason) {
		pre.goOnRunning(t)
		return
	}
	pre.halt(t, reason)
}

// halt does the work of stop.
func (pre *preempter) halt(t *Task, reason Reason) {
	was := t.Phase
	if t.Phase, t.StopReason = Stopping, reason; was == Suspending {
		for _, grant := range t.Current().Grants { // unlike a suspending task, a stopping one counts as load
			pre.placer.predict([]*GPU{pre.byID[grant.GPU]})
		}
	}
	pre.decide(Stop{Task: t.ID, Attempt: t.Last().N, Reason: reason})
}

func (s *State) finish(t *Task, phase Phase, code int, reason Reason) {
	if fate := s.recorded.fate(t.ID); fate != nil {
		s.meet(t, fate)
		return
	}
	s.end(t, phase, code, reason)
}

// end does the work of finish.
func (s *State) end(t *Task, phase Phase, code int, reason Reason) {
	was := t.Phase
	t.Phase, t.Ended, t.Code, t.Reason = phase, s.now, code, reason
	s.removeTask(t)
	s.breakers.complainerEnded(t.ID)
	s.queue.leaveGroup(t, was)
	s.step.endings = append(s.step.endings, ending{t.ID, phase, t.hasStarted(), t.Group})
	if s.queue.head.Task == t.ID {
		s.queue.head = headReservation{}
	}
	s.decide(Finish{Task: *t})
}
