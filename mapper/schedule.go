package mapper

import "slices"

// pass is one look at the queues.
type pass struct {
	fit      survey
	head     *Task    // the first that does not fit
	favoured *Task    // the first of those whose ageing is over
	before   keptFree // what was kept free in the pass before
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
	if !s.dirty || s.engineDown.Code != "" || s.paused != nil || s.shut() {
		return
	}
	s.dirty = false
	s.acquaint()
	s.shrink()
	s.arrange()
	s.lookForTasks()
	s.evacuate()
}

// lookForTasks makes a pass, if somebody waits.
func (s *State) lookForTasks() {
	if s.queue.len() == 0 {
		return
	}
	s.settleNamespaces()
	var p *pass
	if s.sick.paused() {
		p = s.test()
	} else {
		p = s.inOrder(s.kept)
		if s.checkClaims() { // what was kept is for all again
			p = s.inOrder(s.kept)
		}
		s.rotate(p.blocked)
		s.makeWay(p)
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
// the users, and with make-way it may end a claim to GPUs that others were refused;
// then the pass ends, and the caller repeats it.
func (s *State) pass(before keptFree) *pass {
	p := &pass{before: before}
	s.step.released = false
	s.faces()
	s.kept = keptFree{} // decided again below; tasks before the favoured one must not be affected
	p.fit = s.survey(p)
	if s.queue.byPriority {
		s.byPriority(p)
		return p
	}
	s.reach[0] = s.walk(p, s.queue.recovery())
	s.reach[1] = 0
	if !s.recoveryBlocks() {
		if s.policy.ahead != nil {
			s.policy.ahead(s, p)
		}
		if p.reordered = s.step.released; p.reordered {
			return p
		}
		s.reach[1] = s.walk(p, s.queue.main())
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
func (s *State) byPriority(p *pass) {
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
				passed = s.walk(p, lane)
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

// walk tries the tasks of one queue and returns how many it passed over before it
// stopped; 0: it has seen all. Tasks in back-off, tasks that need a GPU that is
// not there now, and tasks over their user's quota or of a full namespace do not count
// for the look-ahead.
func (s *State) walk(p *pass, lanes []lane) int {
	tried, passed, launched := 0, 0, false
	before := len(p.blocked)
	for l := range lanes {
		lane := &lanes[l]
		for _, line := range lane.lines {
			for i := 0; i < line.len(); {
				if tried == s.opt.LookAhead && launched {
					tried, launched = s.counted(p.blocked[before:]), false
				}
				if tried == s.opt.LookAhead || s.shut() {
					s.dirty = s.shut()
					return passed
				}
				t := line.at(i)
				if t.NotBefore <= s.now && s.onTrial(t) && s.canFit(t) && !s.barred(t) && !s.bounded(t) {
					if gpus := s.place(p, t); gpus != nil {
						line.remove(i)
						s.putOn(t, gpus)
						launched = true
						if s.restand(t, lane) || s.step.released {
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
