package mapper

import (
	"slices"

	"carma/mapper/model"
)

// suspendedFor returns the reason of a task's suspension, with its duration so far.
func (l *ledger) suspendedFor(t *model.Task) model.Reason {
	r := t.Suspension.Reason
	if since := t.Suspension.Since; since > 0 {
		r.Span = l.now.Sub(since)
	}
	return r
}

// preempting returns how many tasks are being suspended for a task, and the first of
// them.
func (l *ledger) preempting(t *model.Task) model.Reason {
	r := model.Reason{Code: model.ReasonWay}
	for _, g := range l.gpus {
		for i := range g.Residents {
			v := l.tasks[g.Residents[i].Task]
			if v.Phase != model.Suspending || v.Suspension.Preemptor() != t.ID {
				continue
			}
			if r.Count++; r.Count == 1 {
				r.Task, r.GPU = v.ID, g.Index
			}
		}
	}
	return r
}

// isNominated reports whether a GPU is nominated for a task.
func (l *ledger) isNominated(t *model.Task) bool {
	return l.opt.Preempts() && slices.ContainsFunc(l.gpus, func(g *model.GPU) bool { return g.NominatedFor == t.ID })
}

// nominatedForOther reports whether a GPU is nominated for another task. A task of higher
// priority may take a GPU that is kept only for a suspended task to resume, while no task
// is being suspended for it.
func (l *ledger) nominatedForOther(t *model.Task, g *model.GPU) bool {
	if g.NominatedFor == 0 || g.NominatedFor == t.ID {
		return false
	}
	c := l.tasks[g.NominatedFor]
	return c == nil || !c.ResumesInPlace() || t.Priority <= c.Priority || l.leavingForOther(c.ID)
}

// clearNominations ends the nominations of a task.
func (pre *preempter) clearNominations(t *model.Task) {
	if !pre.opt.Preempts() {
		return
	}
	pre.placer.cache.clock++
	for _, g := range pre.gpus {
		if g.NominatedFor == t.ID {
			g.NominatedFor = 0
			pre.placer.markChangedGPU(g)
			pre.dirty, pre.released = true, true
		}
	}
}

// clearAllNominations ends all nominations, because preemption is off.
func (pre *preempter) clearAllNominations() {
	for _, g := range pre.gpus {
		g.NominatedFor = 0
	}
}

// expireNominations ends the nominations of tasks for which no task is being suspended
// any more, and reports whether there were any.
func (s *State) expireNominations() (ended bool) {
	if !s.opt.Preempts() {
		return false
	}
	for _, g := range s.gpus {
		if g.NominatedFor == 0 || s.leavingForOther(g.NominatedFor) || s.resumesOn(g) {
			continue
		}
		g.NominatedFor, ended = 0, true
		s.placer.cache.clock++
		s.placer.markChangedGPU(g)
	}
	return ended
}

// resumesOn reports whether a GPU is kept for a suspended task that had it, see
// nominateOriginal, and the task could resume if the residents of its GPUs left.
func (s *State) resumesOn(g *model.GPU) bool {
	t := s.tasks[g.NominatedFor]
	return t != nil && t.Waiting() && t.ResumesInPlace() && s.suspendedTooLong(t) && t.Suspension.Includes(g.ID) &&
		s.canFit(t) && !s.queue.barred(t) && !s.bounded(t)
}

// leavingForOther reports whether any task is being suspended for a task.
func (l *ledger) leavingForOther(id model.TaskID) bool {
	return slices.ContainsFunc(l.gpus, func(g *model.GPU) bool {
		return g.NominatedFor == id && slices.ContainsFunc(g.Residents, func(r model.Resident) bool {
			v := l.tasks[r.Task]
			return v.Phase == model.Suspending && v.Suspension.Preemptor() == id
		})
	})
}
