package predict

import (
	"math"

	"carma/mapper/interference"
	"carma/mapper/model"
)

// PredictedCap returns the largest allowed predicted slowdown, so that the cap holds in
// the likely worst case: the larger the prediction errors here, the lower it is.
func (pr *Predictor) PredictedCap() float64 {
	return 1 + (pr.SlowdownCap()-1)*pr.pairs.proven()
}

// LikelyWorst is the likely worst case, in standard deviations.
const LikelyWorst = 3

// SlowdownCap returns the largest allowed slowdown: the option, or its default.
func (pr *Predictor) SlowdownCap() float64 {
	if pr.Options().SlowdownCap > 0 {
		return pr.Options().SlowdownCap
	}
	return DefaultSlowdownCap
}

// DefaultSlowdownCap is the default of the option of that name.
const DefaultSlowdownCap = 1.6

// TasksChanged updates the speeds after the tasks on some GPUs changed.
func (pr *Predictor) TasksChanged(gpus []*model.GPU) {
	for _, g := range gpus {
		g.ChangedAt = pr.Now()
	}
	pr.UpdateSpeeds(gpus)
}

// UpdateSpeeds computes the present speed of each task on some GPUs. The work done so far is
// kept as the time that it would have taken alone.
func (pr *Predictor) UpdateSpeeds(gpus []*model.GPU) {
	for _, g := range gpus {
		g.InvalidateForecast()
		var space [16]Demand
		demands := space[:0]
		for i := range g.Residents {
			r := &g.Residents[i]
			d := pr.Demand(r.Load, pr.TaskByID(r.Task))
			d.idle = d.idle || pr.TaskByID(r.Task).Phase == model.Suspending
			demands = append(demands, d)
		}
		var room [16]float64
		for i, speed := range pr.SharingMode(g).Speeds(room[:0], demands) {
			g.Residents[i].Speed = speed
		}
	}
	for _, g := range gpus {
		for i := range g.Residents {
			pr.UpdateSpeedOf(pr.TaskByID(g.Residents[i].Task))
		}
	}
}

// SharingMode is the input of a speed prediction besides the tasks: how the tasks share the
// GPU, and the measured corrections of pairs.
type SharingMode struct {
	slices  bool // tasks take turns in time slices
	domains bool // MPS domains take turns in time slices
	pairs   *pairs
	scratch *[16]float64 // for the speeds of a forecast
}

// SharingMode returns how the tasks on a GPU share it.
func (pr *Predictor) SharingMode(g *model.GPU) SharingMode {
	return SharingMode{g.Sharing == model.SharingTurns, g.Sharing == model.SharingUsers, &pr.pairs, &pr.speeds}
}

// Buffer returns space for the speeds of a GPU's tasks. Each call returns the same space.
func (on SharingMode) Buffer() []float64 { return on.scratch[:0] }

// Speeds returns the predicted speeds of tasks on one GPU. An idle task neither slows
// others down nor is slowed down.
func (on SharingMode) Speeds(into []float64, loads []Demand) []float64 {
	var space [16]interference.Task
	busy := space[:0]
	for i := range loads {
		if !loads[i].idle {
			busy = append(busy, loads[i].task)
		}
	}
	if len(busy) < len(loads) {
		return on.besideIdle(into, loads)
	}
	first := len(into)
	into = interference.Fitted.SpeedsOf(into, busy)
	if len(loads) > 1 {
		on.adjust(loads, into[first:])
	}
	return into
}

// adjust applies to the speeds the effects that the model does not contain.
func (on SharingMode) adjust(loads []Demand, speeds []float64) {
	if on.slices {
		var space [16]float64
		times := space[:0]
		for i := range loads {
			times = append(times, loads[i].busy)
		}
		interference.TakeTurns(times, speeds)
	}
	if on.domains && severalMPSDomains(loads) {
		byMPSDomain(loads, speeds)
	}
	on.pairs.correct(loads, speeds)
}

// besideIdle returns the speeds if some loads are idle.
func (on SharingMode) besideIdle(into []float64, loads []Demand) []float64 {
	var space [16]Demand
	busy := space[:0]
	for _, l := range loads {
		if !l.idle {
			busy = append(busy, l)
		}
	}
	var room [16]float64
	speeds := room[:0]
	if len(busy) > 0 {
		speeds = on.Speeds(speeds, busy)
	}
	for _, l := range loads {
		if l.idle {
			into = append(into, 1)
			continue
		}
		into = append(into, speeds[0])
		speeds = speeds[1:]
	}
	return into
}

// Demand is a load as the interference model takes it, with the number of the task's
// kind among the measured pairs, and the number of its MPS domain.
type Demand struct {
	idle   bool // the task leaves the GPU idle
	busy   float64
	Kind   int32
	circle int32
	task   interference.Task
}

// Demand returns the demand of a task with a load; t is nil for other processes.
func (pr *Predictor) Demand(l interference.Load, t *model.Task) Demand {
	kind := int32(0)
	if t != nil {
		kind = pr.pairs.number(t.Kind)
	}
	return Demand{l.SMACT == 0, l.Busy(), kind, pr.MPSDomainOf(t), interference.Fitted.Task(l)}
}

// WithDoubt returns a load with its likely worst activity, one standard deviation more.
func WithDoubt(l interference.Load, doubt float64) interference.Load {
	if doubt > 0 {
		worst := math.Min(l.SMACT+doubt, math.Max(l.SMACT, doubtMost))
		if l.SMACT > 0 {
			l.DRAMA = math.Min(1, l.DRAMA*worst/l.SMACT)
		}
		l.SMACT = worst
	}
	return l
}

// doubtMost is the highest SM activity that WithDoubt assumes.
const doubtMost = 0.9

// UpdateSpeedOf sets the speed of a task to its speed on its slowest GPU.
func (pr *Predictor) UpdateSpeedOf(t *model.Task) {
	pr.UpdateWork(t)
	for _, grant := range t.Current().Grants {
		if g := pr.GPU(grant.GPU); g != nil {
			g.InvalidateForecast()
		}
	}
	t.Speed = 1
	for _, grant := range t.Current().Grants {
		if g := pr.GPU(grant.GPU); g != nil {
			if r := g.Resident(t.ID); r != nil {
				t.Speed = min(t.Speed, r.Speed)
			}
		}
	}
}
