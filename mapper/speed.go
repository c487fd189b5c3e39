package mapper

import (
	"math"

	"carma/mapper/interference"
	"carma/mapper/model"
)

// pace updates the speeds after the tasks on some GPUs changed.
func (pl *placer) pace(gpus []*model.GPU) {
	for _, g := range gpus {
		g.ChangedAt = pl.Now()
	}
	pl.predict(gpus)
}

// predict computes the present speed of each task on some GPUs. The work done so far is
// kept as the time that it would have taken alone.
func (pl *placer) predict(gpus []*model.GPU) {
	for _, g := range gpus {
		g.InvalidateForecast()
		var space [16]loadDemand
		demands := space[:0]
		for i := range g.Residents {
			r := &g.Residents[i]
			d := pl.predictor.loadDemand(r.Load, pl.TaskByID(r.Task))
			d.idle = d.idle || pl.TaskByID(r.Task).Phase == model.Suspending
			demands = append(demands, d)
		}
		var room [16]float64
		for i, speed := range pl.predictor.sharingMode(g).speeds(room[:0], demands) {
			g.Residents[i].Speed = speed
		}
	}
	for _, g := range gpus {
		for i := range g.Residents {
			pl.repace(pl.TaskByID(g.Residents[i].Task))
		}
	}
}

// sharingMode is the input of the speeds on a GPU apart from its tasks: how they share
// it, and the measured corrections of pairs.
type sharingMode struct {
	slices  bool // tasks take turns
	domains bool // MPS domains take turns
	pairs   *pairs
	scratch *[16]float64 // for the speeds of a forecast
}

func (pr *predictor) sharingMode(g *model.GPU) sharingMode {
	return sharingMode{g.Sharing == model.SharingTurns, g.Sharing == model.SharingUsers, &pr.pairs, &pr.speeds}
}

// speeds returns the predicted speeds of tasks on one GPU. An idle task neither slows
// others down nor is slowed down.
func (on sharingMode) speeds(into []float64, loads []loadDemand) []float64 {
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

// adjust applies to the speeds what the model does not know.
func (on sharingMode) adjust(loads []loadDemand, speeds []float64) {
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
func (on sharingMode) besideIdle(into []float64, loads []loadDemand) []float64 {
	var space [16]loadDemand
	busy := space[:0]
	for _, l := range loads {
		if !l.idle {
			busy = append(busy, l)
		}
	}
	var room [16]float64
	speeds := room[:0]
	if len(busy) > 0 {
		speeds = on.speeds(speeds, busy)
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

// loadDemand is a load as the interference model takes it, with the number of the task's
// kind among the measured pairs, and the number of its MPS domain.
type loadDemand struct {
	idle   bool // the task leaves the GPU idle
	busy   float64
	kind   int32
	circle int32
	task   interference.Task
}

// loadDemand returns the demand of a task with a load; t is nil for other processes.
func (pr *predictor) loadDemand(l interference.Load, t *model.Task) loadDemand {
	kind := int32(0)
	if t != nil {
		kind = pr.pairs.number(t.Kind)
	}
	return loadDemand{l.SMACT == 0, l.Busy(), kind, pr.mpsDomainOf(t), interference.Fitted.Task(l)}
}

// doubted returns a load with its likely worst activity: a standard deviation more.
func doubted(l interference.Load, doubt float64) interference.Load {
	if doubt > 0 {
		worst := math.Min(l.SMACT+doubt, math.Max(l.SMACT, doubtMost))
		if l.SMACT > 0 {
			l.DRAMA = math.Min(1, l.DRAMA*worst/l.SMACT)
		}
		l.SMACT = worst
	}
	return l
}

// doubtMost is the highest SM activity that doubted assumes.
const doubtMost = 0.9

// repace sets the speed of a task to its speed on its slowest GPU.
func (pl *placer) repace(t *model.Task) {
	pl.predictor.progress(t)
	for _, grant := range t.Current().Grants {
		if g := pl.GPU(grant.GPU); g != nil {
			g.InvalidateForecast()
		}
	}
	t.Speed = 1
	for _, grant := range t.Current().Grants {
		if g := pl.GPU(grant.GPU); g != nil {
			if r := g.Resident(t.ID); r != nil {
				t.Speed = min(t.Speed, r.Speed)
			}
		}
	}
}

// progress updates the work that a running task has done up to now.
func (pr *predictor) progress(t *model.Task) {
	t.Done, t.PacedAt = t.DoneBy(pr.Now()), pr.Now()
}
