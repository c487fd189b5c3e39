package mapper

import (
	"math"

	"carma/internal/units"
	"carma/mapper/interference"
	"carma/mapper/model"
)

// residentForecast is the forecast of one task on a GPU. Times are seconds.
type residentForecast struct {
	task   model.TaskID // or 0 for the candidate or for other processes
	sm     float64
	demand loadDemand
	// worstDemand is the demand with the likely worst activity.
	worstDemand loadDemand
	// done and left are the finished and the expected remaining work, as seconds alone on
	// the GPU. elapsed is the time since it started.
	done, left, elapsed float64
	// elsewhere is its speed on the slowest of its other GPUs.
	elsewhere float64
	basis     basis

	// The results of the forecast. finish is the end, in seconds from now. persisting is
	// the slowdown after neighbourStay if no task comes or goes.
	finish, persisting float64
}

// slowdown is the predicted total run time divided by the run time alone.
func (p *residentForecast) slowdown() float64 { return (p.elapsed + p.finish) / max(1, p.done+p.left) }

// worst is the slowdown that is compared with the cap. If the task's run time is known,
// it is the slowdown at its end. If not, the task may end at any time, so worst is the
// larger of the slowdown at its end and the slowdown if all neighbours stay.
func (p *residentForecast) worst() float64 {
	if p.basis == known {
		return p.slowdown()
	}
	return max(p.slowdown(), p.persisting)
}

// staying is the slowdown after neighbourStay at a given speed.
func (p *residentForecast) staying(speed float64) float64 {
	return (p.elapsed + neighbourStay) / max(1, p.done+neighbourStay*speed)
}

// neighbourStay is the time, in seconds, for which a forecast assumes that neighbours
// with unknown run times stay.
const neighbourStay = 1800

// bound limits a part of a forecast: its end, in seconds from now, and its slowdown if
// its neighbours stay. Both include a little room for rounding.
type bound struct{ finish, persisting float64 }

// rounding is the room for rounding, as a share.
const rounding = 1e-9

// within returns the bound of a part for a largest allowed slowdown: at its end only, or,
// if worst, also if its neighbours stay.
func (p *residentForecast) within(slowdown float64, worst bool) bound {
	slowdown *= 1 + rounding
	b := bound{slowdown*max(1, p.done+p.left) - p.elapsed, math.Inf(1)}
	if worst && p.basis != known {
		b.persisting = slowdown
	}
	return b
}

// forecast predicts when each of the tasks on a GPU ends if no other task comes. With
// bounds it stops and returns false as soon as a part is certain to exceed its bound;
// then its results are not valid.
func (on sharingMode) forecast(parts []residentForecast, bounds []bound) bool {
	var activeSpace [16]int
	var leftSpace [16]float64
	var demandSpace [16]loadDemand
	active, left := activeSpace[:0], leftSpace[:0]
	for i := range parts {
		left = append(left, parts[i].left)
		active = append(active, i)
	}
	for now := 0.0; len(active) > 0; {
		demands := demandSpace[:0]
		for _, i := range active {
			demands = append(demands, parts[i].demand)
		}
		speeds := on.speeds(on.scratch[:0], demands)
		next := math.Inf(1)
		for k, i := range active {
			p := &parts[i]
			speeds[k] = min(speeds[k], p.elsewhere)
			next = min(next, left[i]/speeds[k])
			if now == 0 {
				p.persisting = p.staying(speeds[k])
				if bounds != nil && p.persisting > bounds[i].persisting {
					return false
				}
			}
		}
		now += next
		rest := active[:0]
		for k, i := range active {
			if left[i] -= next * speeds[k]; left[i] <= 1e-6*parts[i].left {
				parts[i].finish = now
			} else {
				rest = append(rest, i)
			}
			if bounds != nil && now+max(left[i], 0) > bounds[i].finish { // no task is faster than alone
				return false
			}
		}
		active = rest
	}
	return true
}

// parts appends the tasks on a GPU as they are expected to be at an instant. If the
// monitor sees more activity than they explain, one more part represents the unknown
// process. That part stays.
func (pr *predictor) parts(parts []residentForecast, g *model.GPU, at units.Instant) []residentForecast {
	for i := range g.Residents {
		r := &g.Residents[i]
		t := pr.TaskByID(r.Task)
		if t.Phase == model.Suspending {
			continue // it has no load any more
		}
		p := residentForecast{task: t.ID, sm: r.Load.SMACT, demand: pr.loadDemand(r.Load, t), elsewhere: 1, done: t.DoneBy(at)}
		p.worstDemand = p.demand
		if doubt := pr.doubtOf(t, r.Doubt); doubt > 0 {
			p.worstDemand = pr.loadDemand(doubted(r.Load, doubt), t)
		}
		if a := t.Current(); a.Started > 0 {
			p.elapsed = max(0, at.Sub(a.Started)-t.SuspendedBy(at)).Seconds()
		}
		p.left, p.basis = pr.left(t, p.done)
		for _, grant := range t.Current().Grants {
			if grant.GPU != g.ID {
				p.elsewhere = min(p.elsewhere, pr.GPU(grant.GPU).Resident(t.ID).Speed)
			}
		}
		parts = append(parts, p)
	}
	if more := pr.extra(g); more > 0 {
		load := interference.Load{SMACT: more, SMOCC: g.SMOCC * more / g.SMACT, DRAMA: g.DRAMA * more / g.SMACT}
		demand := pr.loadDemand(load, nil)
		parts = append(parts, residentForecast{sm: more, demand: demand, worstDemand: demand, elsewhere: 1, left: neighbourStay, basis: guessed})
	}
	return parts
}

// extra returns the SM activity of a GPU that its tasks do not explain. It is 0 while the
// difference is small, while the samples show an earlier state, and where samples are
// only an upper bound.
func (pr *predictor) extra(g *model.GPU) float64 {
	if g.SMACT < extraLeast || g.Coarse || !pr.settled(g) {
		return 0
	}
	sm := 0.0
	for i := range g.Residents {
		sm += g.Residents[i].Load.SMACT * g.Residents[i].Speed
	}
	if more := g.SMACT - min(sm, 1); more > extraLeast {
		return more
	}
	return 0
}

// extraLeast is the unexplained SM activity below which extra is 0.
const extraLeast = 0.15

// left returns the expected remaining work of a task, in seconds alone on its GPUs. For a
// task beyond its expected end it is a share of its finished work (overrunKnown,
// overrunGuessed).
func (pr *predictor) left(t *model.Task, done float64) (float64, basis) {
	whole, basis := pr.runTime(t)
	overrun := overrunGuessed
	if basis == known {
		overrun = overrunKnown
	}
	return max(whole.Seconds()-done, overrun*max(done, whole.Seconds()/overrunPart), 1), basis
}

// A task that has reached its expected end is assumed to continue for this share of its
// finished work: overrunKnown if earlier runs of the task are known, else overrunGuessed.
// At least one part in overrunPart of the expected run time counts as finished.
const (
	overrunKnown   = 0.05
	overrunGuessed = 0.5
	overrunPart    = 5
)

// pessimistic appends the same tasks with their remaining work multiplied by lateness,
// and their likely worst activity.
func pessimistic(late, parts []residentForecast) []residentForecast {
	late = append(late, parts...)
	for i := range late {
		late[i].left *= lateness[late[i].basis]
		late[i].demand = late[i].worstDemand
	}
	return late
}

// lateness is the factor by which a task may run longer than expected. Two in three of
// the shipped workloads are within a factor of two of their model's median. The end of a
// task with an unknown run time is never relied on.
var lateness = [...]float64{known: 1, typical: latenessTypical, guessed: latenessGuessed}

const (
	latenessTypical = 2
	latenessGuessed = 100
)
