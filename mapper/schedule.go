package mapper

import (
	"slices"

	"carma/mapper/units"
)

// pass is one look at the queues.
type pass struct {
	fit      survey
	head     *Task    // the first that does not fit
	favoured *Task    // the first of those whose ageing is over
	before   keptFree // what was kept free in the pass before
	failed   []*Task
	// blocked are the tasks that were tried and did not fit. reordered: the order
	// of the users has changed during the walk.
	blocked   []*Task
	reordered bool
}

// schedule launches the tasks that fit, in queue order. Each queue is looked at
// until as many tasks as the look-ahead did not fit. So the recovery queue goes
// first and does not block the main queue.
func (s *State) schedule() {
	if !s.dirty || s.engineDown.Code != "" || s.shut() {
		return
	}
	s.dirty = false
	s.acquaint()
	s.shrink()
	s.arrange()
	if s.queue.len() == 0 {
		return
	}
	var p *pass
	if s.sick.paused() {
		p = s.test()
	} else {
		p = s.inOrder(s.kept)
		s.rotate(p.blocked)
	}
	s.keepFair()
	if s.policy.pick != nil && p.head != nil && s.again <= s.now { // what was too slow may be good enough as time passes
		s.again = s.now.Add(lookAgain)
		s.at(s.again, deadline{})
	}
}

// inOrder makes a pass, and repeats it while the order of users changes.
func (s *State) inOrder(before keptFree) *pass {
	p := s.pass(before)
	for p.reordered {
		p = s.pass(before)
	}
	return p
}

// pass walks the queues once. In the order fair a launch may change the order of
// the users; then the pass ends, and the caller repeats it.
func (s *State) pass(before keptFree) *pass {
	p := &pass{before: before}
	s.faces()
	s.kept = keptFree{} // decided again below; tasks before the favoured one must not be affected
	p.fit = s.survey(p)
	s.reach[0] = s.walk(p, s.queue.recovery())
	s.reach[1] = 0
	if !s.recoveryBlocks() {
		if s.policy.ahead != nil {
			s.policy.ahead(s, p)
		}
		s.reach[1] = s.walk(p, s.queue.main())
	}
	return p
}

// recoveryBlocks reports whether a recovering task keeps the whole main queue
// from starting.
func (s *State) recoveryBlocks() bool {
	return s.opt.Recovery == RecoverOriginal && lanesLen(s.queue.recovery()) > 0
}

// inSight reports whether the last pass looked as far as a waiting task's
// place in its queue.
func (s *State) inSight(t *Task) bool {
	reach := s.reach[1]
	if t.Phase == Recovering {
		reach = s.reach[0]
	}
	return reach == 0 || s.queue.place(t) <= reach
}

// walk tries the tasks of one queue and returns how many it passed over before it
// stopped; 0: it has seen all. Tasks in back-off, tasks that need a GPU that is
// not there now, and tasks over their user's quota do not count for the look-
// ahead.
func (s *State) walk(p *pass, lanes []lane) int {
	tried, passed := 0, 0
	for l := range lanes {
		lane := &lanes[l]
		for _, line := range lane.lines {
			for i := 0; i < line.len(); {
				if tried == s.opt.LookAhead || s.shut() {
					s.dirty = s.shut()
					return passed
				}
				t := line.at(i)
				if t.NotBefore <= s.now && s.onTrial(t) && s.canFit(t) && s.overQuota(t).Code == "" {
					if gpus := s.place(p, t); gpus != nil {
						line.remove(i)
						s.launch(t, gpus)
						if s.restand(t, lane) {
							p.reordered = true
							return passed
						}
						p.fit = s.survey(p)
						continue
					}
					s.block(p, t)
					tried++
				}
				passed++
				i++
			}
		}
	}
	return 0
}

// place picks the GPUs for a task: filter, rank, pick. It returns all of them, on
// one machine, or nil.
func (s *State) place(p *pass, t *Task) []*GPU {
	if !p.fit.possible(t, s.alone(t)) || s.policy.gate == nil && p.hopeless(t, s.alone(t)) {
		return nil
	}
	since := s.turnedDown(t)
	fitting := s.step.gpus[:0]
	for _, g := range s.gpus {
		if g.notes.fresh >= since && s.reject(t, g) == "" {
			fitting = append(fitting, g)
		}
	}
	s.step.gpus = fitting
	gpus := s.choose(t, ofMachinesWith(t.GPUs, fitting))
	if gpus == nil {
		t.notes.tried.pass, t.notes.tried.kept = s.notes.passes, s.kept
		p.failed = append(p.failed, t)
	}
	return gpus
}

// choose picks among GPUs that may take a task; nil: none of them.
func (s *State) choose(t *Task, fitting []*GPU) []*GPU {
	switch {
	case len(fitting) == 0:
		return nil
	case s.policy.pick != nil:
		return s.policy.pick(s, t, fitting)
	}
	s.rank(t, fitting)
	return ofOneMachine(t.GPUs, fitting)
}

// hopeless reports whether a task that asks for no more than t did not fit in
// this pass. Room only shrinks during a pass, so t does not fit either.
func (p *pass) hopeless(t *Task, alone bool) bool {
	for _, f := range p.failed {
		if f.GPUs <= t.GPUs && f.Need <= t.Need && (alone || !f.Alone) {
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

// survey is the most that the GPUs can take. It lets a pass skip most tasks that
// do not fit without looking at each GPU.
type survey struct {
	open int             // GPUs that pass the preconditions common to all tasks
	idle int             // of these, idle
	free [16]units.Bytes // the most free memory among them, descending
}

// survey leaves out the GPUs that are kept free, once the pass is behind the task
// they are kept for.
func (s *State) survey(p *pass) (v survey) {
	for _, g := range s.gpus {
		if s.rejectAny(g) != "" || g.alone() || s.full(g) || p.favoured != nil && s.kept.Until == 0 && s.keptFor(g) != 0 {
			continue
		}
		if g.idle() {
			v.idle++
		}
		v.add(s.free(g))
	}
	return v
}

func (v *survey) add(free units.Bytes) {
	i := min(v.open, len(v.free)-1)
	v.open++
	if v.open > len(v.free) && free <= v.free[i] {
		return
	}
	for ; i > 0 && v.free[i-1] < free; i-- {
		v.free[i] = v.free[i-1]
	}
	v.free[i] = free
}

func (v *survey) possible(t *Task, alone bool) bool {
	if alone && v.idle < t.GPUs {
		return false
	}
	return v.open >= t.GPUs && v.free[min(t.GPUs, len(v.free))-1] >= max(t.Need, 1)
}

// launch books the memory in the same step, so a task owns its grant before it
// has allocated. A task that is alone is granted all memory of its GPUs.
func (s *State) launch(t *Task, gpus []*GPU) {
	alone := s.alone(t)
	grants := make([]Grant, len(gpus))
	for i, g := range gpus {
		grants[i] = Grant{GPU: g.ID, Memory: t.Need}
		switch {
		case alone:
			grants[i].Memory = s.free(g)
		case s.opt.Booking == BookSamples:
			grants[i].Memory = 0
		}
	}
	s.book(t, gpus, grants, alone)
}

// book begins an attempt of a task that is in no queue any more.
func (s *State) book(t *Task, gpus []*GPU, grants []Grant, alone bool) {
	a := Attempt{N: 1, Grants: grants, Launched: s.now}
	if last := t.Last(); last != nil {
		a.N = last.N + 1
	}
	t.From = place{t.Phase, t.QueuedAt, t.BlockedAt}
	s.tests(s.sick, t.ID)
	var warm units.Instant
	if s.opt.WarmUp > 0 {
		warm = units.Never
	}
	for i, g := range gpus {
		g.add(Resident{Task: t.ID, Grant: grants[i].Memory, Alone: alone, Load: t.load(i), WarmUntil: warm}, s.opt.Headroom)
		g.notes.fresh = s.notes.passes
		s.tests(g.Sick, t.ID)
	}
	s.ring = (gpus[len(gpus)-1].pos + 1) % len(s.gpus)
	t.Attempts = append(t.Attempts, a)
	t.Phase, t.NotBefore, t.BlockedAt, t.Done, t.PacedAt, t.notes.tried = Launching, 0, 0, 0, 0, tried{}
	s.users.of(t.User).waiting--
	s.occupy(t)
	s.pace(gpus)
	if s.opt.Interval > 0 {
		s.notBefore = s.now.Add(s.opt.Interval)
		s.at(s.notBefore, deadline{})
	}
	if s.kept.Task == t.ID {
		s.kept = keptFree{}
	}
	s.decide(Launch{Task: t.ID, Attempt: a.N, Grants: slices.Clone(a.Grants), Alone: alone})
}

// alone reports whether a task gets GPUs for itself.
func (s *State) alone(t *Task) bool { return t.Alone || s.policy.idleOnly }
