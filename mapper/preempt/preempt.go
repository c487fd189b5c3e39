package preempt

import (
	"cmp"
	"slices"
	"time"

	"carma/mapper/ledger"
	"carma/mapper/model"
	"carma/mapper/place"
)

// Preempt suspends tasks for waiting ones that may preempt them. Each of these gets GPUs
// that are nominated for no other.
func (pre *Preempter) Preempt(c *place.Cycle) {
	if !pre.Options().Preempts() {
		return
	}
	pre.swapsTried, pre.before = 0, 0
	if t := c.Favoured(); t != nil && !slices.Contains(c.Blocked(), t) {
		pre.preemptFor(t)
	}
	for _, t := range c.Blocked() {
		pre.preemptFor(t)
		pre.before++
	}
}

// preemptFor suspends tasks for a waiting one, for the first reason that applies.
func (pre *Preempter) preemptFor(t *model.Task) {
	switch {
	case !t.Waiting() || t.GPUs == 0 || t.WayAt > 0 && pre.Now() < t.WayAt.Add(PreemptRetry) || pre.IsNominated(t) && !t.ResumesInPlace():
	case pre.reserve.MayFreeHeld(t) && pre.findVictims(t, model.ReasonFilled):
	case pre.preempts(t) && pre.findVictims(t, model.ReasonMadeWay):
	case pre.swaps(t):
		pre.findVictims(t, model.ReasonSwapped)
	}
}

// preempts reports whether a waiting task may preempt others: for its priority, its
// terminal, or because it has been suspended for long.
func (pre *Preempter) preempts(t *model.Task) bool {
	if t.Phase == model.Suspended {
		return pre.SuspendedTooLong(t)
	}
	return pre.Options().MakeWay && (t.Priority > model.Low || t.Terminal)
}

// isPreemptible reports whether running task v may be suspended for waiting task t, for a
// reason.
func (pre *Preempter) isPreemptible(v, t *model.Task, why model.ReasonCode) bool {
	if v.Terminal || !pre.canSuspend(v, why) {
		return false
	}
	a := v.Last()
	ran := pre.Now().Sub(max(a.Started, a.Back))
	switch {
	case why == model.ReasonFilled:
		return v.Priority <= t.Priority && a.Fills != 0 && ran >= PreemptibleAfter
	case why == model.ReasonSwapped:
		return v.Priority <= t.Priority && ran >= SwappableAfter && pre.swapsFor(v, t)
	case t.Phase == model.Suspended:
		return v.Priority <= t.Priority && ran >= SwappableAfter && pre.suspendedTime(v) < pre.suspendedTime(t)
	}
	return (v.Priority < t.Priority || t.Terminal && v.Priority == t.Priority) && ran >= PreemptibleAfter
}

// SetPreemptionTimers sets timers for the instants at which a started or resumed task becomes
// preemptible.
func (pre *Preempter) SetPreemptionTimers(t *model.Task) {
	if pre.Options().Preempts() && t.GPUs > 0 && !t.Terminal {
		if pre.Options().MakeWay || t.Last().Fills != 0 {
			pre.SetTimer(pre.Now().Add(PreemptibleAfter), ledger.Timer{})
		}
		pre.SetTimer(pre.Now().Add(SwappableAfter), ledger.Timer{})
	}
}

// preemption is a GPU to which a task could go, with the victims there, and the cost: the
// seconds that it adds to all completion times.
type preemption struct {
	g       *model.GPU
	victims []*model.Task
	cost    float64
}

// findVictims suspends the cheapest victims, so that a waiting task has its GPUs. If that
// does not help, or others are being suspended already, it suspends none.
func (pre *Preempter) findVictims(t *model.Task, why model.ReasonCode) bool {
	var ways []preemption
	for _, g := range pre.GPUList() {
		if w, ok := pre.cheapestPreemption(t, g, why); ok {
			ways = append(ways, w)
		}
	}
	picked := pickPreemptions(ways, t.GPUs, func(node []preemption) bool {
		h := pre.Host(node[0].g.Node)
		return h == nil || !h.Known || pre.reserve.HostHolds(t, h, victimsOn(node)...)
	})
	victims := victimsOn(picked)
	switch {
	case len(victims) == 0:
		pre.nominateOriginal(t)
		return false
	case why == model.ReasonSwapped && !pre.gains(t, picked):
		return false
	}
	for _, w := range picked {
		w.g.NominatedFor = t.ID
		w.g.Changed()
	}
	t.WayAt = pre.Now()
	pre.SetTimer(pre.Now().Add(PreemptRetry), ledger.Timer{})
	for _, v := range victims {
		pre.displace(displacement{v, pre.preemptionReason(t, why), suspendOnly})
	}
	return true
}

// preemptionReason returns the reason for which a task is suspended for a waiting one.
func (pre *Preempter) preemptionReason(t *model.Task, why model.ReasonCode) model.Reason {
	r := model.Reason{Code: why, Task: t.ID}
	if why == model.ReasonSwapped {
		n, _ := pre.predictor.LongestRun(t)
		r.Most = n.Round(time.Second)
	}
	return r
}

// pickPreemptions returns the n cheapest preemptions that are all on one machine, for which
// holds must be true, or nil.
func pickPreemptions(all []preemption, n int, holds func(node []preemption) bool) (best []preemption) {
	least := 0.0
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
		if (best == nil || cost < least) && holds(node) {
			best, least = node, cost
		}
	}
	return best
}

// victimsOn returns all victims, each once: a victim on several GPUs leaves all of them.
func victimsOn(ways []preemption) (all []*model.Task) {
	for _, w := range ways {
		for _, v := range w.victims {
			if !slices.Contains(all, v) {
				all = append(all, v)
			}
		}
	}
	return all
}

// cheapestPreemption returns the cheapest preemption that makes room for a task on a GPU.
func (pre *Preempter) cheapestPreemption(t *model.Task, g *model.GPU, why model.ReasonCode) (best preemption, ok bool) {
	after := g.Clone()
	var yield []*model.Task
	for _, r := range g.Residents {
		switch v := pre.TaskByID(r.Task); {
		case v.Phase == model.Stopping || v.Phase == model.Suspending:
			after.Vacate(v) // it leaves anyway
		case pre.isPreemptible(v, t, why):
			yield = append(yield, v)
		}
	}
	if pre.placer.Reject(t, after) == "" {
		return preemption{g, nil, pre.addedBy(t, after)}, true
	}
	slices.SortStableFunc(yield, func(a, b *model.Task) int { return cmp.Compare(pre.victimCost(a), pre.victimCost(b)) })
	yield = yield[:min(len(yield), maxVictims)]
	for set := uint(1); set < 1<<len(yield); set++ {
		then := after.Clone()
		var victims []*model.Task
		cost := 0.0
		for i, v := range yield {
			if set&(1<<i) == 0 {
				continue
			}
			then.Vacate(v)
			victims = append(victims, v)
			cost += pre.victimCost(v)
		}
		if ok && cost >= best.cost || pre.placer.Reject(t, then) != "" {
			continue
		}
		if cost += float64(len(victims)) * pre.stays(t, then); !ok || cost+pre.addedBy(t, then) < best.cost {
			best, ok = preemption{g, victims, cost + pre.addedBy(t, then)}, true
		}
	}
	return best, ok
}

// victimCost returns the cost of suspending a task, without the time until it resumes:
// its memory copies, and more the longer it was already suspended.
func (pre *Preempter) victimCost(v *model.Task) float64 {
	whole, _ := pre.predictor.RunTime(v)
	return 2*float64(pre.SuspendableOn(v))/copySpeed + suspendedCost*v.Last().SuspendedTime.Seconds()/max(whole.Seconds(), 60)
}

// suspendedCost is the cost, in seconds, of suspending a task that has already been
// suspended for as long as its run time.
const suspendedCost = 3600

// addedBy returns the seconds that a placement adds to all completion times.
func (pre *Preempter) addedBy(t *model.Task, g *model.GPU) float64 {
	if !pre.placer.Predicts() {
		return 0
	}
	return pre.placer.AddedSeconds(t, g)
}

// stays returns the time, in seconds, for which a task is expected to keep its victims
// suspended.
func (pre *Preempter) stays(t *model.Task, g *model.GPU) float64 {
	if !pre.placer.Predicts() {
		run, _ := pre.predictor.RunTime(t)
		return min(run, ledger.SuspendedTooLongAfter).Seconds()
	}
	return min(pre.placer.FinishSeconds(t, g), ledger.SuspendedTooLongAfter.Seconds())
}

// Preemption: running tasks (the victims) are suspended for a waiting task that goes
// before them, if it can start then. The preemptor is
//
//   - a task of higher priority than the victims, at once;
//   - a task with a terminal in which people work, of no lower priority, at once;
//   - a task that has been suspended for [ledger.SuspendedTooLongAfter], of no lower priority.
//
// The victims' GPU is nominated for the preemptor. So no other task takes the room, and
// two waiting tasks do not count on the same room. A nomination ends when its task is
// placed or no longer waits, or when no victim is being suspended any more and the task
// still does not fit.
const (
	// PreemptRetry is the time until a task may preempt again, if it could not use the room.
	PreemptRetry = 2 * time.Minute
	// PreemptibleAfter is the time that a task runs, after its start or resumption, before a task
	// of higher priority may preempt it; SwappableAfter, before a suspended one may.
	PreemptibleAfter = time.Minute
	SwappableAfter   = 10 * time.Minute
	// copySpeed is the assumed speed at which memory is copied, in bytes per second
	// (cuda-checkpoint issue 29: 80 GB in 15 s).
	copySpeed = 5e9
	// maxVictims is the largest number of tasks on a GPU of which all subsets are tried.
	maxVictims = 6
)
