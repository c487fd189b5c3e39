package mapper

// siblings calls fn for each waiting task that does the same work as t and was not
// launched yet.
func (s *State) siblings(t *Task, fn func(*Task)) {
	if !s.opt.Learn || t.Kind == "" {
		return
	}
	for _, w := range s.waitingOf(t.Kind, nil) {
		if w.GPUs == t.GPUs && len(w.Attempts) == 0 {
			fn(w)
		}
	}
}

// propagateLoad tells the siblings of a task the activity that was seen of it: many are
// submitted at once, and wait.
func (s *State) propagateLoad(t *Task) {
	s.siblings(t, func(w *Task) {
		if len(w.Expected.Loads) == 0 {
			w.Expected.Loads, w.Doubt, w.Expected.Source = t.Expected.Loads, t.Doubt, SourceSeen
			w.cache.tried.learned = 0
			if s.policy.pick == nil { // a gate may look at it, and asks nobody whether it has changed
				w.cache.tried = rejectedAt{}
			}
			s.onEnqueue(w)
		}
	})
}

// propagateMemory has the siblings of a task that has ended well book what it needed.
// Those whose memory was declared or estimated keep that until they are submitted
// again.
func (s *State) propagateMemory(t *Task) {
	s.siblings(t, func(w *Task) {
		if w.Learner {
			s.appraise(w)
			w.cache.tried = rejectedAt{}
			s.onEnqueue(w)
		}
	})
}
