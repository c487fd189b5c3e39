package mapper

import (
	"carma/internal/units"
	"carma/mapper/attempt"
	"carma/mapper/breaker"
	"carma/mapper/fairshare"
	"carma/mapper/learn"
	"carma/mapper/ledger"
	"carma/mapper/model"
	"carma/mapper/observe"
	"carma/mapper/place"
	"carma/mapper/predict"
	"carma/mapper/preempt"
	"carma/mapper/queue"
	"carma/mapper/reserve"
)

// cycle is one scheduling cycle.
type cycle struct {
	*place.Cycle
	reordered bool // the order of the users has changed, or a nomination has ended
}

// scheduler runs the scheduling cycles: it walks over the queues and binds the tasks that
// fit.
type scheduler struct {
	*ledger.Ledger
	users     *fairshare.Users
	predictor *predict.Predictor
	breakers  *breaker.Breakers
	queue     *queue.Queue
	reserve   *reserve.Reservations
	placer    *place.Placer
	preempter *preempt.Preempter
	learner   *learn.Learner
	observer  *observe.Observer
	attempts  *attempt.Attempts

	again    units.Instant // when the queues are scheduled again for policy carma
	critical []*model.Task // the working space of a cycle
}

// schedule launches the tasks that fit, in queue order. It tries each queue until as many
// tasks as the look-ahead did not fit. So the recovery queue goes first and does not
// block the main queue.
func (sc *scheduler) schedule() {
	if !sc.Dirty() || sc.breakers.IsEngineDown() || sc.launchesPaused() {
		return
	}
	sc.ClearDirty()
	sc.learner.LearnLoads()
	sc.observer.Shrink()
	sc.queue.SortUsers()
	sc.runCycle()
	sc.preempter.Evacuate()
}

// updateGrants is the part of [scheduler.schedule] that makes no decisions of its own. In
// format 0 changes of grants were not recorded.
func (sc *scheduler) updateGrants() {
	if !sc.Dirty() || sc.breakers.IsEngineDown() || sc.Now() < sc.attempts.NotBefore() || sc.attempts.LimitReached() {
		return
	}
	sc.learner.LearnLoads()
	if sc.DecisionFormat() < 1 {
		sc.observer.Shrink()
	}
}

// runCycle runs a scheduling cycle if any task waits.
func (sc *scheduler) runCycle() {
	if sc.queue.QueueLen() == 0 {
		return
	}
	sc.breakers.CloseTestedNamespaces()
	var p *cycle
	if sc.breakers.IsEnginePaused() {
		p = sc.launchProbe()
	} else {
		p = sc.cycleUntilStable(sc.reserve.Head())
		if sc.preempter.ExpireNominations(func(t *model.Task) bool { return !sc.bounded(t) }) { // expired nominations make GPUs available to all
			p = sc.cycleUntilStable(sc.reserve.Head())
		}
		sc.preempter.Rotate(p.Blocked())
		sc.preempter.Preempt(p.Cycle)
	}
	sc.queue.FairTick()
	if sc.placer.Predicts() && p.Head() != nil && sc.again <= sc.Now() { // with time, a rejected placement may become acceptable
		sc.again = sc.Now().Add(place.ForecastValid)
		sc.SetTimer(sc.again, ledger.Timer{})
	}
}

// cycleUntilStable runs a cycle, and repeats it while the order of users changes.
func (sc *scheduler) cycleUntilStable(before reserve.Head) *cycle {
	p := sc.cycle(before)
	for p.reordered {
		p = sc.cycle(before)
	}
	return p
}

// cycle walks over the queues once. In the order fair a launch may change the order of
// the users, and with preemption it may end a nomination for which other tasks were
// rejected. Then the cycle ends, and the caller repeats it.
func (sc *scheduler) cycle(before reserve.Head) *cycle {
	sc.preempter.BeginCycle()
	p := &cycle{Cycle: sc.placer.BeginCycle(before)}
	if sc.queue.ByPriority() {
		sc.byPriority(p)
		return p
	}
	sc.queue.SetReach(0, sc.scanQueue(p, sc.queue.Recovery()))
	sc.queue.SetReach(1, 0)
	if !sc.queue.RecoveryBlocks() {
		if sc.placer.Policy().Critical {
			sc.startCritical(p)
		}
		if p.reordered = sc.preempter.Released(); p.reordered {
			return p
		}
		sc.queue.SetReach(1, sc.scanQueue(p, sc.queue.Main()))
	}
	return p
}

// counted returns how many of the tasks that did not fit still count for the look-ahead.
// A task that a later launch has put over its user's quota does not.
func (sc *scheduler) counted(blocked []*model.Task) (n int) {
	for _, t := range blocked {
		if !sc.bounded(t) {
			n++
		}
	}
	return n
}

// byPriority walks over the queues when preemption is on: a task of one priority goes
// before all of lower priorities, even if these recover or were suspended. Otherwise the
// victims would take back the room that they have left.
func (sc *scheduler) byPriority(p *cycle) {
	sc.queue.SetReach(0, 0)
	sc.queue.SetReach(1, 0)
	before, reach, ahead := [2]int{}, [2]int{}, false
	for i := range sc.queue.Recovery() {
		for q, lanes := range [2][]queue.Lane{sc.queue.Recovery(), sc.queue.Main()} {
			lane := lanes[i : i+1]
			if lane[0].Len() == 0 || reach[q] > 0 {
				continue
			}
			if q == 1 && !ahead && sc.placer.Policy().Critical {
				sc.startCritical(p)
				ahead, p.reordered = true, sc.preempter.Released()
			}
			passed := 0
			if !p.reordered {
				passed = sc.scanQueue(p, lane)
			}
			if p.reordered {
				return
			} else if passed > 0 {
				reach[q] = before[q] + passed
				sc.queue.SetReach(q, reach[q])
			}
			before[q] += lane[0].Len()
		}
	}
}

// scanQueue tries the tasks of one queue and returns how many it passed over before it
// stopped, or 0 if it reached the end. Tasks in back-off, tasks that need a missing GPU,
// and tasks over their user's quota or of a full namespace do not count for the
// look-ahead.
func (sc *scheduler) scanQueue(p *cycle, lanes []queue.Lane) int {
	tried, passed, launched := 0, 0, false
	before := len(p.Blocked())
	for l := range lanes {
		lane := &lanes[l]
		for _, line := range lane.Lines() {
			for i := 0; i < line.Len(); {
				if tried == sc.Options().LookAhead && launched {
					tried, launched = sc.counted(p.Blocked()[before:]), false
				}
				if tried == sc.Options().LookAhead || sc.launchesPaused() {
					if sc.launchesPaused() {
						sc.MarkDirty()
					} else {
						sc.ClearDirty()
					}
					return passed
				}
				t := line.At(i)
				if t.NotBefore <= sc.Now() && sc.breakers.MayLaunch(t) && sc.CanFit(t) && !sc.reserve.IsBarred(t) && !sc.bounded(t) {
					if gpus := sc.placer.Place(p.Cycle, t); gpus != nil {
						line.Remove(i)
						sc.attempts.Bind(t, gpus)
						launched = true
						if sc.queue.UpdateShareRank(t, lane) || sc.preempter.Released() {
							p.reordered = true
							return passed
						}
						sc.placer.UpdateFree(p.Cycle)
						continue
					}
					sc.placer.MarkBlocked(p.Cycle, t)
					tried++
				}
				passed++
				i++
			}
		}
	}
	return 0
}
