package learn

import "carma/mapper/model"

// siblings calls fn for each waiting task of the same kind and number of GPUs as t that
// has not been launched yet.
func (ln *Learner) siblings(t *model.Task, fn func(*model.Task)) {
	if !ln.Options().Learn || t.Kind == "" {
		return
	}
	for _, w := range ln.WaitingOf(t.Kind, nil) {
		if w.GPUs == t.GPUs && len(w.Attempts) == 0 {
			fn(w)
		}
	}
}

// propagateLoads copies the observed activity of tasks to their siblings.
func (ln *Learner) propagateLoads(of []*model.Task) {
	for _, t := range of {
		ln.propagateLoad(t)
	}
}

// propagateLoad copies the observed activity of a task to its siblings: often many are
// submitted at once, and wait.
func (ln *Learner) propagateLoad(t *model.Task) {
	ln.siblings(t, func(w *model.Task) {
		if len(w.Expected.Loads) == 0 {
			w.Expected.Loads, w.Doubt, w.Expected.Source = t.Expected.Loads, t.Doubt, model.SourceSeen
			ln.placer.LoadChanged(w)
			if !ln.placer.Predicts() { // a filter may use it, and has no cache key that changes with it
				ln.placer.Retry(w)
			}
			ln.queue.UpdateBacklog(w)
		}
	})
}

// propagateMemory updates the learners among the siblings of a successful task with the
// memory it needed. Siblings with declared or estimated memory keep that until they are
// submitted again.
func (ln *Learner) propagateMemory(t *model.Task) {
	ln.siblings(t, func(w *model.Task) {
		if w.Learner {
			ln.SetFirstGrant(w)
			ln.placer.Retry(w)
			ln.queue.UpdateBacklog(w)
		}
	})
}
