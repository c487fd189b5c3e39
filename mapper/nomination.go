package mapper

import (
	"carma/mapper/model"
)

// suspendedFor returns the reason of a task's suspension, with its duration so far.
func (s *State) suspendedFor(t *model.Task) model.Reason {
	r := t.Suspension.Reason
	if since := t.Suspension.Since; since > 0 {
		r.Span = s.Now().Sub(since)
	}
	return r
}

// preempting returns how many tasks are being suspended for a task, and the first of
// them.
func (s *State) preempting(t *model.Task) model.Reason {
	r := model.Reason{Code: model.ReasonWay}
	for _, g := range s.GPUList() {
		for i := range g.Residents {
			v := s.TaskByID(g.Residents[i].Task)
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

// clearNominations ends the nominations of a task.
func (pre *preempter) clearNominations(t *model.Task) {
	if !pre.Options().Preempts() {
		return
	}
	for _, g := range pre.GPUList() {
		if g.NominatedFor == t.ID {
			g.NominatedFor = 0
			pre.placer.NominationChanged(g)
			pre.released = true
			pre.MarkDirty()
		}
	}
}

// clearAllNominations ends all nominations, because preemption is off.
func (pre *preempter) clearAllNominations() {
	for _, g := range pre.GPUList() {
		g.NominatedFor = 0
	}
}

// expireNominations ends the nominations of tasks for which no task is being suspended
// any more, and reports whether there were any.
func (s *State) expireNominations() (ended bool) {
	if !s.Ledger.Options().Preempts() {
		return false
	}
	for _, g := range s.GPUList() {
		if g.NominatedFor == 0 || s.LeavingForOther(g.NominatedFor) || s.resumesOn(g) {
			continue
		}
		g.NominatedFor, ended = 0, true
		s.placer.NominationChanged(g)
	}
	return ended
}

// resumesOn reports whether a GPU is kept for a suspended task that had it, see
// nominateOriginal, and the task could resume if the residents of its GPUs left.
func (s *State) resumesOn(g *model.GPU) bool {
	t := s.TaskByID(g.NominatedFor)
	return t != nil && t.Waiting() && t.ResumesInPlace() && s.SuspendedTooLong(t) && t.Suspension.Includes(g.ID) &&
		s.CanFit(t) && !s.reserve.IsBarred(t) && !s.bounded(t)
}
