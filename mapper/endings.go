package mapper

func (s *State) cancel(ev Cancel) {
	t, asked := s.tasks[ev.Task], Reason{Code: ReasonAsked, Text: ev.Reason}
	switch {
	case t != nil && (t.SlotUsed || t.Overuse || t.Moving || t.Recall != nil): // it is stopping already, and is not to come back
		t.SlotUsed, t.Overuse, t.Moving, t.Recall, t.StopReason = false, false, false, nil, asked
		t.TimedOut = ev.Failed
	case t == nil || t.Phase == Stopping:
	case t.Phase == Away && t.StopReason.Code != "": // it is stopping already
	case t.Phase == Away:
		t.TimedOut = ev.Failed
		s.stopAway(t, asked)
	case t.Phase.Placed():
		t.TimedOut = ev.Failed
		s.stop(t, asked)
	default:
		if t.Phase == Queued || t.Phase == Recovering {
			s.queue.remove(t)
			s.waitsNoMore(t)
			s.unclaim(t)
			s.users.make(t.party()).waiting--
			s.dirty = true
		}
		phase := Cancelled
		if ev.Failed {
			phase = Failed
		}
		s.finish(t, phase, 0, asked)
	}
}

// stopAway stops a suspended task, which stays suspended until its container has ended.
func (s *State) stopAway(t *Task, reason Reason) {
	if t.waiting() {
		s.dequeue(t)
		s.dirty = true
	}
	t.StopReason = reason
	s.decide(Stop{Task: t.ID, Attempt: t.Last().N, Reason: reason})
}

func (s *State) stop(t *Task, reason Reason) {
	if !s.script.mayStop(t.ID, reason) {
		s.goOnRunning(t)
		return
	}
	s.halt(t, reason)
}

// halt does the work of stop.
func (s *State) halt(t *Task, reason Reason) {
	was := t.Phase
	if t.Phase, t.StopReason = Stopping, reason; was == Suspending {
		for _, grant := range t.Current().Grants { // as one that stops it counts again
			s.predict([]*GPU{s.byID[grant.GPU]})
		}
	}
	s.decide(Stop{Task: t.ID, Attempt: t.Last().N, Reason: reason})
}

func (s *State) finish(t *Task, phase Phase, code int, reason Reason) {
	if fate := s.script.fate(t.ID); fate != nil {
		s.meet(t, fate)
		return
	}
	s.end(t, phase, code, reason)
}

// end does the work of finish.
func (s *State) end(t *Task, phase Phase, code int, reason Reason) {
	was := t.Phase
	t.Phase, t.Ended, t.Code, t.Reason, t.notes = phase, s.now, code, reason, taskNotes{}
	s.leave(t)
	s.complainerEnded(t.ID)
	s.leaveGroup(t, was)
	s.step.endings = append(s.step.endings, ending{t.ID, phase, t.hasStarted(), t.Group})
	if s.kept.Task == t.ID {
		s.kept = keptFree{}
	}
	s.decide(Finish{Task: *t})
}
