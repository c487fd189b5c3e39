package mapper

import (
	"cmp"
	"slices"

	"carma/mapper/units"
)

// hold names the task that GPUs are kept free for: the first one in order that
// does not fit and whose ageing is over. Nothing behind it is placed on these
// GPUs, so that being overtaken has a bound; what is before it is not hurt.
type hold struct {
	Task TaskID  `json:"task,omitempty"`
	GPUs []GPUID `json:"gpus,omitempty"`
	// Until is when they are expected to be ready for it; what is expected to
	// end before may go there, and nothing else of its priority, be it before
	// or behind it. 0: not for a task that was chosen so, see reserve.go.
	Until units.Instant `json:"until,omitempty"`
}

// heldFor returns the task a GPU is kept free for, or 0.
func (s *State) heldFor(g *GPU) TaskID {
	if slices.Contains(s.hold.GPUs, g.ID) {
		return s.hold.Task
	}
	return 0
}

// heldFrom reports whether a GPU is kept free for a task that t may not
// overtake.
func (s *State) heldFrom(t *Task, g *GPU) bool {
	id := s.heldFor(g)
	switch {
	case id == 0 || id == t.ID:
		return false
	case s.hold.Until != 0:
		return t.Phase != Recovering && t.Priority <= s.tasks[id].Priority && !s.endsInTime(t, g)
	}
	return s.queue.before(s.tasks[id], t)
}

// block notes that t does not fit: ageing starts for the first such task of a
// pass, and the first whose ageing is over gets GPUs kept free. A task keeps
// its age when others come before it, so a stream of these cannot undo it.
func (s *State) block(p *pass, t *Task) {
	p.blocked = append(p.blocked, t)
	if p.head == nil {
		p.head = t
		if t.BlockedAt == 0 {
			t.BlockedAt = s.now
		}
	}
	if p.holder != nil || t.BlockedAt == 0 || s.now < t.BlockedAt.Add(s.opt.Ageing) {
		return
	}
	p.holder = t
	s.holdFor(t, p.before)
	p.fit = s.survey(p)
}

// holdFor chooses the GPUs that are kept free for a task. It stays with those
// that were chosen before for as long as they can serve.
func (s *State) holdFor(t *Task, before hold) {
	unfit := func(id GPUID) bool { g := s.byID[id]; return g == nil || s.room(g, s.alone(t)) < max(t.Need, 1) }
	if before.Task == t.ID && !slices.ContainsFunc(before.GPUs, unfit) {
		s.hold = before
		return
	}
	s.hold.Task = t.ID
	for _, g := range s.soonest(t) {
		s.hold.GPUs = append(s.hold.GPUs, g.ID)
	}
}

// soonest guesses the GPUs that will first have room for a task that can fit:
// for one that wants GPUs for itself those with the fewest tasks, else those
// with the most free memory.
func (s *State) soonest(t *Task) []*GPU {
	alone := s.alone(t)
	var able []*GPU
	for _, g := range s.gpus {
		if s.room(g, alone) >= max(t.Need, 1) {
			able = append(able, g)
		}
	}
	able = ofMachinesWith(t.GPUs, able)
	slices.SortStableFunc(able, func(a, b *GPU) int {
		free := cmp.Compare(s.free(b), s.free(a))
		if alone {
			return cmp.Or(cmp.Compare(len(a.Residents), len(b.Residents)), free)
		}
		return cmp.Or(compareBool(a.alone(), b.alone()), free)
	})
	return ofOneMachine(t.GPUs, able)
}
