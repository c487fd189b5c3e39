package mapper

import "slices"

// cycle is one look at the queues.
type cycle struct {
	fit      freeSummary
	head     *Task           // the first that does not fit
	favoured *Task           // the first of those whose ageing is over
	before   headReservation // what was kept free in the pass before
	failed   []failure
	// blocked are the tasks that were tried and did not fit. reordered: the order
	// of the users has changed during the walk.
	blocked   []*Task
	reordered bool
}

// schedule launches the tasks that fit, in queue order. Each queue is looked at
// until as many tasks as the look-ahead did not fit. So the recovery queue goes
// first and does not block the main queue.
func (s *State) schedule() {
	if !s.dirty || s.engineDown.Code != "" || s.paused != nil || s.launchesPaused() {
		return
	}
	s.dirty = false
	s.learnLoads()
	s.shrink()
	s.sortUsers()
	s.runCycle()
	s.evacuate()
}

// runCycle makes a pass, if somebody waits.
func (s *State) runCycle() {
	if s.queue.len() == 0 {
		return
	}
	s.settleNamespaces()
	var p *cycle
	if s.engineBreaker.paused() {
		p = s.launchProbe()
	} else {
		p = s.cycleUntilStable(s.head)
		if s.expireNominations() { // what was kept is for all again
			p = s.cycleUntilStable(s.head)
		}
		s.rotate(p.blocked)
		s.preempt(p)
	}
	s.fairTick()
	if s.policy.pick != nil && p.head != nil && s.again <= s.now { // what was too slow may be good enough as time passes
		s.again = s.now.Add(forecastValid)
		s.at(s.again, timer{})
	}
}

// cycleUntilStable makes a pass, and repeats it while the order of users changes.
func (s *State) cycleUntilStable(before headReservation) *cycle {
	p := s.cycle(before)
	for p.reordered {
		p = s.cycle(before)
	}
	return p
}

// cycle walks the queues once. In the order fair a launch may change the order of
// the users, and with make-way it may end a claim to GPUs that others were refused;
// then the pass ends, and the caller repeats it.
func (s *State) cycle(before headReservation) *cycle {
	p := &cycle{before: before}
	s.step.released = false
	s.markChanged()
	s.head = headReservation{} // decided again below; tasks before the favoured one must not be affected
	p.fit = s.freeSummary(p)
	if s.queue.byPriority {
		s.byPriority(p)
		return p
	}
	s.reach[0] = s.scanQueue(p, s.queue.recovery())
	s.reach[1] = 0
	if !s.recoveryBlocks() {
		if s.policy.ahead != nil {
			s.policy.ahead(s, p)
		}
		if p.reordered = s.step.released; p.reordered {
			return p
		}
		s.reach[1] = s.scanQueue(p, s.queue.main())
	}
	return p
}

// counted is how many of the tasks that did not fit still count for the look-ahead: not
// those that a launch since then has put over their user's quota.
func (s *State) counted(blocked []*Task) (n int) {
	for _, t := range blocked {
		if !s.bounded(t) {
			n++
		}
	}
	return n
}

// byPriority walks the queues where tasks make way for others: one of a priority goes
// before all of lower ones, even if these recover or were suspended. Else they would take
// the room that they have left.
func (s *State) byPriority(p *cycle) {
	s.reach = [2]int{}
	before, ahead := [2]int{}, false
	for i := range s.queue.recovery() {
		for q, lanes := range [2][]lane{s.queue.recovery(), s.queue.main()} {
			lane := lanes[i : i+1]
			if lane[0].len() == 0 || s.reach[q] > 0 {
				continue
			}
			if q == 1 && !ahead && s.policy.ahead != nil {
				s.policy.ahead(s, p)
				ahead, p.reordered = true, s.step.released
			}
			passed := 0
			if !p.reordered {
				passed = s.scanQueue(p, lane)
			}
			if p.reordered {
				return
			} else if passed > 0 {
				s.reach[q] = before[q] + passed
			}
			before[q] += lane[0].len()
		}
	}
}

// byPriority reports whether a priority of both queues goes before all lower ones.
func (o *Options) byPriority() bool { return o.MakeWay && o.Recovery != RecoverOriginal }

// recoveryBlocks reports whether a recovering task keeps the whole main queue
// from starting.
func (s *State) recoveryBlocks() bool {
	if s.opt.Recovery != RecoverOriginal {
		return false
	}
	return slices.ContainsFunc(s.queue.recovery(), func(l lane) bool {
		return slices.ContainsFunc(l.waiting(), func(t *Task) bool { return t.Phase == Recovering })
	})
}

// inSight reports whether the last pass looked as far as a waiting task's
// place in its queue.
func (s *State) inSight(t *Task) bool {
	reach := s.reach[1]
	if t.first() {
		reach = s.reach[0]
	}
	return reach == 0 || s.queue.place(t) <= reach
}

// scanQueue tries the tasks of one queue and returns how many it passed over before it
// stopped; 0: it has seen all. Tasks in back-off, tasks that need a GPU that is
// not there now, and tasks over their user's quota or of a full namespace do not count
// for the look-ahead.
func (s *State) scanQueue(p *cycle, lanes []lane) int {
	tried, passed, launched := 0, 0, false
	before := len(p.blocked)
	for l := range lanes {
		lane := &lanes[l]
		for _, line := range lane.lines {
			for i := 0; i < line.len(); {
				if tried == s.opt.LookAhead && launched {
					tried, launched = s.counted(p.blocked[before:]), false
				}
				if tried == s.opt.LookAhead || s.launchesPaused() {
					s.dirty = s.launchesPaused()
					return passed
				}
				t := line.at(i)
				if t.NotBefore <= s.now && s.isProbe(t) && s.canFit(t) && !s.barred(t) && !s.bounded(t) {
					if gpus := s.place(p, t); gpus != nil {
						line.remove(i)
						s.bind(t, gpus)
						launched = true
						if s.updateShareRank(t, lane) || s.step.released {
							p.reordered = true
							return passed
						}
						p.fit = s.freeSummary(p)
						continue
					}
					s.markBlocked(p, t)
					tried++
				}
				passed++
				i++
			}
		}
	}
	return 0
}
