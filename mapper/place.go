package mapper

import (
	"slices"
)

// place picks the GPUs for a task: filter, rank, pick. It returns all of them, on
// one machine, or nil. A task without a GPU gets an empty list if a machine has room.
func (s *State) place(p *cycle, t *Task) []*GPU {
	if t.GPUs == 0 {
		if h, _ := s.queue.hostFor(t); h != nil {
			return []*GPU{}
		}
		return nil
	}
	if !p.fit.possible(t, s.alone(t)) || s.hopeless(p, t) || len(s.hosts) > 0 && s.queue.hostShort(t).Code != "" {
		return nil
	}
	fitting, all := s.queue.whereHostFits(t, s.candidates(t))
	gpus := s.choose(t, ofMachinesWith(t.GPUs, fitting))
	if gpus == nil && all {
		t.cache.tried.at, t.cache.tried.head = s.cache.clock, s.queue.head
		s.cacheRejection(t)
		p.failed = append(p.failed, s.failure(t))
	}
	return gpus
}

// candidates returns the GPUs that may take a task, among the GPUs that have changed
// since it was last rejected. For a task on several GPUs it considers all machines where
// one has changed, so the other GPUs there that would have taken a part of it count too.
func (s *State) candidates(t *Task) []*GPU {
	since, reopened := s.rejectedByAll(t)
	if len(s.queue.reservations) > 0 {
		since = 0 // with time, a reservation comes closer, or the expected run time changes
	}
	changed := func(g *GPU) bool { return g.cache.changedAt > since || since == 0 || slices.Contains(reopened, g.ID) }
	all := s.gpus
	if l := &s.cache.dirty; l.valid && len(reopened) == 0 && since >= l.since {
		all = l.recent
	}
	if t.GPUs > 1 {
		if since == 0 {
			t.cache.tried.open = nil
		}
		return s.severalOf(t, all, changed)
	}
	fitting := s.step.gpus[:0]
	for _, g := range all {
		if changed(g) && s.reject(t, g) == "" {
			fitting = append(fitting, g)
		}
	}
	s.step.gpus = fitting
	return fitting
}

// severalOf returns the candidates for a task on several GPUs; all holds the GPUs that
// may have changed. It stores which GPUs would take a part of the task.
func (s *State) severalOf(t *Task, all []*GPU, changed func(*GPU) bool) []*GPU {
	fitting, open := s.step.gpus[:0], s.step.open[:0]
	before := t.cache.tried.open
	for len(all) > 0 {
		if !changed(all[0]) {
			all = all[1:]
			continue
		}
		there := s.machineOf(all[0])
		for len(all) > 0 && all[0].Node == there[0].Node {
			all = all[1:]
		}
		for len(before) > 0 && before[0].pos < there[0].pos { // on machines where nothing has changed
			open = append(open, before[0])
			before = before[1:]
		}
		for _, g := range there {
			was := len(before) > 0 && before[0] == g
			if was {
				before = before[1:]
			}
			if (was || changed(g)) && s.reject(t, g) == "" {
				fitting = append(fitting, g)
			}
		}
		open = append(open, fitting[len(fitting)-countOn(fitting, there[0].Node):]...)
	}
	open = append(open, before...)
	s.step.gpus, s.step.open = fitting, open
	t.cache.tried.open = append(t.cache.tried.open[:0], open...)
	return fitting
}

// countOn returns how many GPUs at the end of a list in ledger order are on a machine.
func countOn(gpus []*GPU, node string) (n int) {
	for n < len(gpus) && gpus[len(gpus)-1-n].Node == node {
		n++
	}
	return n
}

// machineOf returns the GPUs of a GPU's machine.
func (l *ledger) machineOf(g *GPU) []*GPU {
	from, to := g.pos, g.pos+1
	for from > 0 && l.gpus[from-1].Node == g.Node {
		from--
	}
	for to < len(l.gpus) && l.gpus[to].Node == g.Node {
		to++
	}
	return l.gpus[from:to]
}

// choose picks among GPUs that may take a task, or returns nil.
func (s *State) choose(t *Task, fitting []*GPU) []*GPU {
	switch {
	case len(fitting) == 0:
		return nil
	case s.policy.pick != nil:
		return s.policy.pick(s, t, fitting)
	}
	s.rank(t, fitting)
	return closest(t, fitting)
}

// failure is a task that did not fit in a scheduling cycle, with its first candidate
// number.
type failure struct {
	t     *Task
	alone bool
	ask   int
}

func (s *State) failure(t *Task) failure {
	f := failure{t: t, alone: s.alone(t)}
	if s.policy.pick != nil {
		f.ask = s.candidatesOf(t)[0]
	}
	return f
}

// hopeless reports whether a task that needs no more than t did not fit in this cycle.
// Room only shrinks during a cycle, so t does not fit either. If the policy has a gate,
// only tasks with equal loads count. A task with nominated GPUs may go where others may
// not.
func (s *State) hopeless(p *cycle, t *Task) bool {
	if t.Phase == Suspended || s.policy.gate != nil && s.policy.pick == nil || len(s.queue.reservations) > 0 || s.isNominated(t) || s.opt.FillHeld && s.queue.head.Task != 0 {
		return false
	}
	mine := s.failure(t)
	for i := range p.failed {
		f := &p.failed[i]
		if f.t.Phase == Suspended || len(f.t.Pinned) > 0 || f.ask != mine.ask || f.t.GPUs > t.GPUs || f.t.NextGrant > t.NextGrant || f.t.Estimate.Share > t.Estimate.Share || !mine.alone && f.alone {
			continue
		}
		if s.policy.gate == nil || f.t.GPUs == t.GPUs && mine.alone == f.alone && slices.Equal(s.candidatesOf(f.t), s.candidatesOf(t)) {
			return true
		}
	}
	return false
}

// ofMachinesWith drops, from a list in ledger order, the GPUs of machines that
// have fewer than n in it.
func ofMachinesWith(n int, gpus []*GPU) []*GPU {
	if n == 1 {
		return gpus
	}
	kept := gpus[:0]
	for len(gpus) > 0 {
		m := 1
		for m < len(gpus) && gpus[m].Node == gpus[0].Node {
			m++
		}
		if m >= n {
			kept = append(kept, gpus[:m]...)
		}
		gpus = gpus[m:]
	}
	return kept
}

// ofOneMachine returns the first n GPUs of the first GPU's machine.
func ofOneMachine(n int, ranked []*GPU) []*GPU {
	same := make([]*GPU, 0, n)
	for _, g := range ranked {
		if g.Node == ranked[0].Node && len(same) < n {
			same = append(same, g)
		}
	}
	return same
}
