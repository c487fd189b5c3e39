package mapper

import "carma/mapper/model"

// siblings calls fn for each waiting task of the same kind and number of GPUs as t that
// has not been launched yet.
func (ln *learner) siblings(t *model.Task, fn func(*model.Task)) {
	if !ln.Options().Learn || t.Kind == "" {
		return
	}
	for _, w := range ln.WaitingOf(t.Kind, nil) {
		if w.GPUs == t.GPUs && len(w.Attempts) == 0 {
			fn(w)
		}
	}
}

// propagateLoad copies the observed activity of a task to its siblings: often many are
// submitted at once, and wait.
func (ln *learner) propagateLoad(t *model.Task) {
	ln.siblings(t, func(w *model.Task) {
		if len(w.Expected.Loads) == 0 {
			w.Expected.Loads, w.Doubt, w.Expected.Source = t.Expected.Loads, t.Doubt, model.SourceSeen
			ln.placer.tried(w).learned = 0
			if ln.placer.policy.pick == nil { // a gate may use it, and has no cache key that changes with it
				ln.placer.retry(w)
			}
			ln.queue.onEnqueue(w)
		}
	})
}

// propagateMemory updates the learners among the siblings of a successful task with the
// memory it needed. Siblings with declared or estimated memory keep that until they are
// submitted again.
func (ln *learner) propagateMemory(t *model.Task) {
	ln.siblings(t, func(w *model.Task) {
		if w.Learner {
			ln.appraise(w)
			ln.placer.retry(w)
			ln.queue.onEnqueue(w)
		}
	})
}
