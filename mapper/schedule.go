package mapper

import (
	"carma/mapper/ledger"
	"carma/mapper/model"
	"carma/mapper/place"
	"carma/mapper/queue"
	"carma/mapper/reserve"
)

// cycle is one scheduling cycle.
type cycle struct {
	*place.Cycle
	reordered bool // the order of the users has changed, or a nomination has ended
}

// schedule launches the tasks that fit, in queue order. It tries each queue until as many
// tasks as the look-ahead did not fit. So the recovery queue goes first and does not
// block the main queue.
func (s *State) schedule() {
	if !s.Dirty() || s.breakers.IsEngineDown() || s.paused != nil || s.launchesPaused() {
		return
	}
	s.ClearDirty()
	s.learner.LearnLoads()
	s.observer.Shrink()
	s.queue.SortUsers()
	s.runCycle()
	s.preempter.Evacuate()
}

// runCycle runs a scheduling cycle if any task waits.
func (s *State) runCycle() {
	if s.queue.QueueLen() == 0 {
		return
	}
	s.breakers.CloseTestedNamespaces()
	var p *cycle
	if s.breakers.IsEnginePaused() {
		p = s.launchProbe()
	} else {
		p = s.cycleUntilStable(s.reserve.Head())
		if s.preempter.ExpireNominations(func(t *model.Task) bool { return !s.bounded(t) }) { // expired nominations make GPUs available to all
			p = s.cycleUntilStable(s.reserve.Head())
		}
		s.preempter.Rotate(p.Blocked())
		s.preempter.Preempt(p.Cycle)
	}
	s.queue.FairTick()
	if s.placer.Predicts() && p.Head() != nil && s.again <= s.Now() { // with time, a rejected placement may become acceptable
		s.again = s.Now().Add(place.ForecastValid)
		s.SetTimer(s.again, ledger.Timer{})
	}
}

// cycleUntilStable runs a cycle, and repeats it while the order of users changes.
func (s *State) cycleUntilStable(before reserve.Head) *cycle {
	p := s.cycle(before)
	for p.reordered {
		p = s.cycle(before)
	}
	return p
}

// cycle walks over the queues once. In the order fair a launch may change the order of
// the users, and with preemption it may end a nomination for which other tasks were
// rejected. Then the cycle ends, and the caller repeats it.
func (s *State) cycle(before reserve.Head) *cycle {
	s.preempter.BeginCycle()
	p := &cycle{Cycle: s.placer.BeginCycle(before)}
	if s.queue.ByPriority() {
		s.byPriority(p)
		return p
	}
	s.queue.SetReach(0, s.scanQueue(p, s.queue.Recovery()))
	s.queue.SetReach(1, 0)
	if !s.queue.RecoveryBlocks() {
		if s.placer.Policy().Critical {
			s.startCritical(p)
		}
		if p.reordered = s.preempter.Released(); p.reordered {
			return p
		}
		s.queue.SetReach(1, s.scanQueue(p, s.queue.Main()))
	}
	return p
}

// counted returns how many of the tasks that did not fit still count for the look-ahead.
// A task that a later launch has put over its user's quota does not.
func (s *State) counted(blocked []*model.Task) (n int) {
	for _, t := range blocked {
		if !s.bounded(t) {
			n++
		}
	}
	return n
}

// byPriority walks over the queues when preemption is on: a task of one priority goes
// before all of lower priorities, even if these recover or were suspended. Otherwise the
// victims would take back the room that they have left.
func (s *State) byPriority(p *cycle) {
	s.queue.SetReach(0, 0)
	s.queue.SetReach(1, 0)
	before, reach, ahead := [2]int{}, [2]int{}, false
	for i := range s.queue.Recovery() {
		for q, lanes := range [2][]queue.Lane{s.queue.Recovery(), s.queue.Main()} {
			lane := lanes[i : i+1]
			if lane[0].Len() == 0 || reach[q] > 0 {
				continue
			}
			if q == 1 && !ahead && s.placer.Policy().Critical {
				s.startCritical(p)
				ahead, p.reordered = true, s.preempter.Released()
			}
			passed := 0
			if !p.reordered {
				passed = s.scanQueue(p, lane)
			}
			if p.reordered {
				return
			} else if passed > 0 {
				reach[q] = before[q] + passed
				s.queue.SetReach(q, reach[q])
			}
			before[q] += lane[0].Len()
		}
	}
}

// scanQueue tries the tasks of one queue and returns how many it passed over before it
// stopped, or 0 if it reached the end. Tasks in back-off, tasks that need a missing GPU,
// and tasks over their user's quota or of a full namespace do not count for the
// look-ahead.
func (s *State) scanQueue(p *cycle, lanes []queue.Lane) int {
	tried, passed, launched := 0, 0, false
	before := len(p.Blocked())
	for l := range lanes {
		lane := &lanes[l]
		for _, line := range lane.Lines() {
			for i := 0; i < line.Len(); {
				if tried == s.Ledger.Options().LookAhead && launched {
					tried, launched = s.counted(p.Blocked()[before:]), false
				}
				if tried == s.Ledger.Options().LookAhead || s.launchesPaused() {
					if s.launchesPaused() {
						s.MarkDirty()
					} else {
						s.ClearDirty()
					}
					return passed
				}
				t := line.At(i)
				if t.NotBefore <= s.Now() && s.breakers.MayLaunch(t) && s.CanFit(t) && !s.reserve.IsBarred(t) && !s.bounded(t) {
					if gpus := s.placer.Place(p.Cycle, t); gpus != nil {
						line.Remove(i)
						s.attempts.Bind(t, gpus)
						launched = true
						if s.queue.UpdateShareRank(t, lane) || s.preempter.Released() {
							p.reordered = true
							return passed
						}
						s.placer.UpdateFree(p.Cycle)
						continue
					}
					s.placer.MarkBlocked(p.Cycle, t)
					tried++
				}
				passed++
				i++
			}
		}
	}
	return 0
}
