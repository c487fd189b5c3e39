package predict

import (
	"math"

	"carma/internal/units"
	"carma/mapper/interference"
	"carma/mapper/model"
)

// TaskForecast is the forecast of one task on a GPU. Times are in seconds.
type TaskForecast struct {
	Task   model.TaskID // or 0 for the candidate or for other processes
	SM     float64
	Demand Demand
	// WorstDemand is the demand with the likely worst activity.
	WorstDemand Demand
	// Done and Left are the finished and the expected remaining work, as seconds alone on
	// the GPU. elapsed is the time since it started.
	Done, Left, elapsed float64
	// Elsewhere is its speed on the slowest of its other GPUs.
	Elsewhere float64
	Basis     Basis

	// The results of the forecast. Finish is the end, in seconds from now. persisting is the
	// slowdown after neighbourStay if the tasks on the GPU do not change.
	Finish, persisting float64
}

// Slowdown returns the predicted total run time divided by the run time alone.
func (p *TaskForecast) Slowdown() float64 { return (p.elapsed + p.Finish) / max(1, p.Done+p.Left) }

// SlowdownForCap returns the slowdown that is compared with the cap. If the task's run time is
// known, it is the slowdown at its end. If not, the task may end at any time, so it is the
// larger of the slowdown at its end and the slowdown if all neighbours stay.
func (p *TaskForecast) SlowdownForCap() float64 {
	if p.Basis == Known {
		return p.Slowdown()
	}
	return max(p.Slowdown(), p.persisting)
}

// SlowdownBeside returns the slowdown after neighbourStay at a given speed.
func (p *TaskForecast) SlowdownBeside(speed float64) float64 {
	return (p.elapsed + neighbourStay) / max(1, p.Done+neighbourStay*speed)
}

// neighbourStay is the time, in seconds, for which a forecast assumes that neighbours
// with unknown run times stay.
const neighbourStay = 1800

// Bound limits a part of a forecast: its end, in seconds from now, and its slowdown if
// its neighbours stay. Both include a little room for rounding.
type Bound struct{ Finish, Persisting float64 }

// Rounding is the room for rounding, as a share.
const Rounding = 1e-9

// Within returns the bound of a part for a largest allowed slowdown: at its end, and, if worst
// is set, also for the case that its neighbours stay.
func (p *TaskForecast) Within(slowdown float64, worst bool) Bound {
	slowdown *= 1 + Rounding
	b := Bound{slowdown*max(1, p.Done+p.Left) - p.elapsed, math.Inf(1)}
	if worst && p.Basis != Known {
		b.Persisting = slowdown
	}
	return b
}

// Forecast predicts when each of the tasks on a GPU ends if no other task is placed there. With
// bounds it stops and returns false as soon as a part is certain to exceed its bound; then its
// results are not valid.
func (on SharingMode) Forecast(parts []TaskForecast, bounds []Bound) bool {
	var activeSpace [16]int
	var leftSpace [16]float64
	var demandSpace [16]Demand
	active, left := activeSpace[:0], leftSpace[:0]
	for i := range parts {
		left = append(left, parts[i].Left)
		active = append(active, i)
	}
	for now := 0.0; len(active) > 0; {
		demands := demandSpace[:0]
		for _, i := range active {
			demands = append(demands, parts[i].Demand)
		}
		speeds := on.Speeds(on.scratch[:0], demands)
		next := math.Inf(1)
		for k, i := range active {
			p := &parts[i]
			speeds[k] = min(speeds[k], p.Elsewhere)
			next = min(next, left[i]/speeds[k])
			if now == 0 {
				p.persisting = p.SlowdownBeside(speeds[k])
				if bounds != nil && p.persisting > bounds[i].Persisting {
					return false
				}
			}
		}
		now += next
		rest := active[:0]
		for k, i := range active {
			if left[i] -= next * speeds[k]; left[i] <= 1e-6*parts[i].Left {
				parts[i].Finish = now
			} else {
				rest = append(rest, i)
			}
			if bounds != nil && now+max(left[i], 0) > bounds[i].Finish { // no task is faster than alone
				return false
			}
		}
		active = rest
	}
	return true
}

// Forecasts appends the tasks on a GPU as they are expected to be at an instant. If the samples
// show more activity than these tasks explain, one more part represents the unknown process.
// That part never ends.
func (pr *Predictor) Forecasts(parts []TaskForecast, g *model.GPU, at units.Instant) []TaskForecast {
	for i := range g.Residents {
		r := &g.Residents[i]
		t := pr.TaskByID(r.Task)
		if t.Phase == model.Suspending {
			continue // it has no load any more
		}
		p := TaskForecast{Task: t.ID, SM: r.Load.SMACT, Demand: pr.Demand(r.Load, t), Elsewhere: 1, Done: t.DoneBy(at)}
		p.WorstDemand = p.Demand
		if doubt := pr.Doubt(t, r.Doubt); doubt > 0 {
			p.WorstDemand = pr.Demand(WithDoubt(r.Load, doubt), t)
		}
		if a := t.Current(); a.Started > 0 {
			p.elapsed = max(0, at.Sub(a.Started)-t.SuspendedBy(at)).Seconds()
		}
		p.Left, p.Basis = pr.WorkLeft(t, p.Done)
		for _, grant := range t.Current().Grants {
			if grant.GPU != g.ID {
				p.Elsewhere = min(p.Elsewhere, pr.GPU(grant.GPU).Resident(t.ID).Speed)
			}
		}
		parts = append(parts, p)
	}
	if more := pr.UnexplainedActivity(g); more > 0 {
		load := interference.Load{SMACT: more, SMOCC: g.SMOCC * more / g.SMACT, DRAMA: g.DRAMA * more / g.SMACT}
		demand := pr.Demand(load, nil)
		parts = append(parts, TaskForecast{SM: more, Demand: demand, WorstDemand: demand, Elsewhere: 1, Left: neighbourStay, Basis: Guessed})
	}
	return parts
}

// UnexplainedActivity returns the SM activity of a GPU that its tasks do not explain. It is 0
// if the difference is small, if the samples show an earlier state, or if the samples are only
// an upper bound.
func (pr *Predictor) UnexplainedActivity(g *model.GPU) float64 {
	if g.SMACT < extraLeast || g.Coarse || !pr.SamplesShowTasks(g) {
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

// extraLeast is the unexplained SM activity below which UnexplainedActivity returns 0.
const extraLeast = 0.15

// Pessimistic appends the same tasks with their remaining work multiplied by lateness,
// and their likely worst activity.
func Pessimistic(late, parts []TaskForecast) []TaskForecast {
	late = append(late, parts...)
	for i := range late {
		late[i].Left *= late[i].Basis.Lateness()
		late[i].Demand = late[i].WorstDemand
	}
	return late
}
