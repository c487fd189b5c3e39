package mapper

import (
	"cmp"
	"slices"
	"time"
)

// Making way: running tasks are suspended for one that waits and goes before them,
// if it can start then. It is for
//
//   - a task of higher priority than theirs, at once;
//   - one in whose terminal people work, of no lower priority, at once;
//   - one that has been suspended for wayBack, of no lower priority.
//
// The GPU that they leave is kept for it: a claim. So nobody else takes the room, and
// two that wait do not count on the same. A claim ends when its task is placed or waits
// no more, or when nobody leaves for it any more and it still does not fit.
const (
	// wayBack is how long a task is suspended until others make way for its return.
	wayBack = 30 * time.Minute
	// wayAgain is how long a task waits for others to make way once more, if it could
	// not use the room.
	wayAgain = 2 * time.Minute
	// wayRun is how long a task runs, after its start or its return, until it makes way
	// for one of higher priority; wayTurn, until it does for a suspended one.
	wayRun  = time.Minute
	wayTurn = 10 * time.Minute
	// waySpeed is how fast memory is taken to be copied, in bytes per second
	// (cuda-checkpoint issue 29: 80 GB in 15 s).
	waySpeed = 5e9
	// wayMost is up to how many tasks on a GPU all ways to make room are weighed.
	wayMost = 6
)

// ReasonMadeWay: it was suspended for Task, that goes before it; for Span now.
const ReasonMadeWay ReasonCode = "made-way"

// ReasonWay: Count tasks make way for it, Task on GPU first.
const ReasonWay ReasonCode = "way"

// preempts reports whether running tasks are suspended for waiting ones.
func (o *Options) preempts() bool { return o.MakeWay || o.SwapShorter || o.FillHeld }

// preempt suspends tasks for those that wait and may displace them. Each gets GPUs that
// no other has a claim to.
func (s *State) preempt(p *cycle) {
	if !s.opt.preempts() {
		return
	}
	s.step.swaps, s.step.before = 0, 0
	if t := p.favoured; t != nil && !slices.Contains(p.blocked, t) {
		s.preemptFor(t)
	}
	for _, t := range p.blocked {
		s.preemptFor(t)
		s.step.before++
	}
}

// preemptFor suspends tasks for one that waits, for the first reason that there is.
func (s *State) preemptFor(t *Task) {
	switch {
	case !t.waiting() || t.GPUs == 0 || t.WayAt > 0 && s.now < t.WayAt.Add(wayAgain) || s.isNominated(t) && !t.resumesInPlace():
	case s.heldFreed(t) && s.findVictims(t, ReasonFilled):
	case s.preempts(t) && s.findVictims(t, ReasonMadeWay):
	case s.swaps(t):
		s.findVictims(t, ReasonSwapped)
	}
}

// suspendedTooLong reports whether a task has been suspended for so long, for others, that it
// goes before what keeps it away.
func (s *State) suspendedTooLong(t *Task) bool {
	return s.opt.preempts() && t.Phase == Suspended && t.Suspension.preemptor() != 0 && s.now >= t.Suspension.Since.Add(wayBack)
}

// preempts reports whether others may make way for a waiting task, for its priority, its
// terminal, or as it has been suspended for long.
func (s *State) preempts(t *Task) bool {
	if t.Phase == Suspended {
		return s.suspendedTooLong(t)
	}
	return s.opt.MakeWay && (t.Priority > Low || t.Terminal)
}

// isPreemptible reports whether a running task makes way for one that waits, for a reason.
func (s *State) isPreemptible(v, t *Task, why ReasonCode) bool {
	if v.Terminal || !s.canPreempt(v, why) {
		return false
	}
	a := v.Last()
	ran := s.now.Sub(max(a.Started, a.Back))
	switch {
	case why == ReasonFilled:
		return v.Priority <= t.Priority && a.Fills != 0 && ran >= wayRun
	case why == ReasonSwapped:
		return v.Priority <= t.Priority && ran >= wayTurn && s.swapsFor(v, t)
	case t.Phase == Suspended:
		return v.Priority <= t.Priority && ran >= wayTurn && s.suspendedTime(v) < s.suspendedTime(t)
	}
	return (v.Priority < t.Priority || t.Terminal && v.Priority == t.Priority) && ran >= wayRun
}

// notePreemptible has the queues looked at when a task that began to run, or is back, may make
// way for others.
func (s *State) notePreemptible(t *Task) {
	if s.opt.preempts() && t.GPUs > 0 && !t.Terminal {
		if s.opt.MakeWay || t.Last().Fills != 0 {
			s.at(s.now.Add(wayRun), timer{})
		}
		s.at(s.now.Add(wayTurn), timer{})
	}
}

// preemptor is a GPU that a task could go to, with those that make way there, and what that
// costs: the seconds that it adds to all completion times.
type preemption struct {
	g       *GPU
	victims []*Task
	cost    float64
}

// findVictims suspends the tasks that cost least, so that a waiting one has its GPUs. If
// that does not help, or others are leaving already, nobody is.
func (s *State) findVictims(t *Task, why ReasonCode) bool {
	var ways []preemption
	for _, g := range s.gpus {
		if w, ok := s.cheapestPreemption(t, g, why); ok {
			ways = append(ways, w)
		}
	}
	picked := s.pickPreemptions(t, ways)
	victims := victimsOn(picked)
	switch {
	case len(victims) == 0:
		s.nominateOriginal(t)
		return false
	case why == ReasonSwapped && !s.gains(t, picked):
		return false
	}
	for _, w := range picked {
		w.g.NominatedFor = t.ID
		w.g.markDirty()
	}
	t.WayAt = s.now
	s.at(s.now.Add(wayAgain), timer{})
	for _, v := range victims {
		s.preemptTask(v, s.preemptionReason(t, why))
	}
	return true
}

// preemptionReason is why a task is suspended for one that waits.
func (s *State) preemptionReason(t *Task, why ReasonCode) Reason {
	r := Reason{Code: why, Task: t.ID}
	if why == ReasonSwapped {
		n, _ := s.length(t)
		r.Most = n.Round(time.Second)
	}
	return r
}

// nominateOriginal keeps the GPUs free to which a suspended task must come back, where those who
// are there cannot leave: else others would come there again and again.
func (s *State) nominateOriginal(t *Task) {
	if !t.resumesInPlace() {
		return
	}
	t.WayAt = s.now
	s.at(s.now.Add(wayAgain), timer{})
	for _, from := range t.Suspension.From { // all or none: two that want the same would wait for each other
		if g := s.byID[from.GPU]; g == nil || g.NominatedFor != 0 && g.NominatedFor != t.ID {
			return
		}
	}
	for _, from := range t.Suspension.From {
		g := s.byID[from.GPU]
		g.NominatedFor = t.ID
		s.cache.clock++
		s.markChangedGPU(g)
	}
}

// pickPreemptions are those that cost least, as many as a task has GPUs, all of one machine
// whose host memory holds the task and what is suspended; nil: there are none.
func (s *State) pickPreemptions(t *Task, all []preemption) (best []preemption) {
	least, n := 0.0, t.GPUs
	for len(all) > 0 {
		m := 1
		for m < len(all) && all[m].g.Node == all[0].g.Node {
			m++
		}
		node := all[:m]
		all = all[m:]
		if m < n {
			continue
		}
		slices.SortStableFunc(node, func(a, b preemption) int { return cmp.Compare(a.cost, b.cost) })
		node = node[:n]
		cost := 0.0
		for _, w := range node {
			cost += w.cost
		}
		if (best == nil || cost < least) && s.hostHoldsVictims(t, node) {
			best, least = node, cost
		}
	}
	return best
}

// hostHoldsVictims reports whether a machine has host memory for a task and for all its
// victims there.
func (s *State) hostHoldsVictims(t *Task, node []preemption) bool {
	h := s.host(node[0].g.Node)
	if h == nil || !h.Known {
		return true
	}
	return s.hostHolds(t, h, victimsOn(node)...)
}

// victimsOn are all that make way, each once: one on several GPUs leaves all of them.
func victimsOn(ways []preemption) (all []*Task) {
	for _, w := range ways {
		for _, v := range w.victims {
			if !slices.Contains(all, v) {
				all = append(all, v)
			}
		}
	}
	return all
}

// cheapestPreemption is the cheapest way to make room for a task on a GPU.
func (s *State) cheapestPreemption(t *Task, g *GPU, why ReasonCode) (best preemption, ok bool) {
	after := g.clone()
	var yield []*Task
	for _, r := range g.Residents {
		switch v := s.tasks[r.Task]; {
		case v.Phase == Stopping || v.Phase == Suspending:
			after.leftBy(v) // it goes anyway
		case s.isPreemptible(v, t, why):
			yield = append(yield, v)
		}
	}
	if s.reject(t, after) == "" {
		return preemption{g, nil, s.addedBy(t, after)}, true
	}
	slices.SortStableFunc(yield, func(a, b *Task) int { return cmp.Compare(s.victimCost(a), s.victimCost(b)) })
	yield = yield[:min(len(yield), wayMost)]
	for set := uint(1); set < 1<<len(yield); set++ {
		then := after.clone()
		var victims []*Task
		cost := 0.0
		for i, v := range yield {
			if set&(1<<i) == 0 {
				continue
			}
			then.leftBy(v)
			victims = append(victims, v)
			cost += s.victimCost(v)
		}
		if ok && cost >= best.cost || s.reject(t, then) != "" {
			continue
		}
		if cost += float64(len(victims)) * s.stays(t, then); !ok || cost+s.addedBy(t, then) < best.cost {
			best, ok = preemption{g, victims, cost + s.addedBy(t, then)}, true
		}
	}
	return best, ok
}

// leftBy takes a task off a page, as it will be when it has left.
func (g *GPU) leftBy(v *Task) {
	g.leave(v.ID)
	if v.Phase != Stopping && v.vacatesFor(Reason{Code: ReasonMadeWay}) {
		g.Residue = append(slices.Clone(g.Residue), SuspendedResidue{v.ID, assumedBehind})
		g.OtherProcesses = (g.OtherProcesses + assumedBehind).Clamp()
		g.settle()
	}
}

// victimCost is what it costs to suspend a task, beside the time until it is back: its
// copies, and more the longer it was away already.
func (s *State) victimCost(v *Task) float64 {
	whole, _ := s.runTime(v)
	return 2*float64(s.onGPUs(v))/waySpeed + wayStretch*v.Last().SuspendedTime.Seconds()/max(whole.Seconds(), 60)
}

// wayStretch is what it costs, in seconds, to suspend a task that was suspended for as
// long as it runs.
const wayStretch = 3600

// addedBy is what a placement adds to all completion times, in seconds.
func (s *State) addedBy(t *Task, g *GPU) float64 {
	if s.policy.pick == nil {
		return 0
	}
	added, _ := s.weigh(g, s.candidatesOf(t)[0])
	return added
}

// stays is how long a task is expected to keep those away that make way for it, in
// seconds.
func (s *State) stays(t *Task, g *GPU) float64 {
	if s.policy.pick == nil {
		run, _ := s.runTime(t)
		return min(run, wayBack).Seconds()
	}
	return min(s.score(g, s.candidatesOf(t)[0]).finish, wayBack.Seconds())
}
