package mapper

import "slices"

// awayFor is for whom a task was suspended, and for how long.
func (s *State) awayFor(t *Task) Reason {
	r := t.Suspension.Reason
	if since := t.Suspension.Since; since > 0 {
		r.Span = s.now.Sub(since)
	}
	return r
}

// wayFor is who makes way for a task.
func (s *State) wayFor(t *Task) Reason {
	r := Reason{Code: ReasonWay}
	for _, g := range s.gpus {
		for i := range g.Residents {
			v := s.tasks[g.Residents[i].Task]
			if v.Phase != Suspending || v.Suspension.way() != t.ID {
				continue
			}
			if r.Count++; r.Count == 1 {
				r.Task, r.GPU = v.ID, g.Index
			}
		}
	}
	return r
}

// claims reports whether a task has a claim to a GPU.
func (s *State) claims(t *Task) bool {
	return s.opt.makesWay() && slices.ContainsFunc(s.gpus, func(g *GPU) bool { return g.Claim == t.ID })
}

// claimedFrom reports whether a GPU is claimed by another task. What is kept for one to
// come home, and nobody leaves for it, those of higher priority may have.
func (s *State) claimedFrom(t *Task, g *GPU) bool {
	if g.Claim == 0 || g.Claim == t.ID {
		return false
	}
	c := s.tasks[g.Claim]
	return c == nil || !c.home() || t.Priority <= c.Priority || s.leavingFor(c.ID)
}

// unclaim ends the claims of a task.
func (s *State) unclaim(t *Task) {
	if !s.opt.makesWay() {
		return
	}
	s.notes.clock++
	for _, g := range s.gpus {
		if g.Claim == t.ID {
			g.Claim = 0
			s.freshenOne(g)
			s.dirty, s.step.released = true, true
		}
	}
}

// endClaims ends all claims: nobody makes way any more.
func (s *State) endClaims() {
	for _, g := range s.gpus {
		g.Claim = 0
	}
}

// checkClaims ends the claims of tasks for which nobody is leaving any more, and reports
// whether there were some.
func (s *State) checkClaims() (ended bool) {
	if !s.opt.makesWay() {
		return false
	}
	for _, g := range s.gpus {
		if g.Claim == 0 || s.leavingFor(g.Claim) || s.comesHome(g) {
			continue
		}
		g.Claim, ended = 0, true
		s.notes.clock++
		s.freshenOne(g)
	}
	return ended
}

// comesHome reports whether a GPU is kept for a task that had it, see keepHome, and the
// task could come back if those on its GPUs left.
func (s *State) comesHome(g *GPU) bool {
	t := s.tasks[g.Claim]
	return t != nil && t.waiting() && t.home() && s.longAway(t) && t.Suspension.has(g.ID) &&
		s.canFit(t) && !s.barred(t) && !s.bounded(t)
}

// leavingFor reports whether a task is being suspended for another.
func (s *State) leavingFor(id TaskID) bool {
	return slices.ContainsFunc(s.gpus, func(g *GPU) bool {
		return g.Claim == id && slices.ContainsFunc(g.Residents, func(r Resident) bool {
			v := s.tasks[r.Task]
			return v.Phase == Suspending && v.Suspension.way() == id
		})
	})
}
