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
