package predict

import (
	"math"
	"slices"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
)

// SpeedView is the speed of a running task and its expected end.
type SpeedView struct {
	// Since is the instant from which its speed is measured beside its present
	// neighbours: some time after Changed.
	Since units.Instant
	// Changed is the instant at which a task was last placed on one of its GPUs, began to run
	// there, or left.
	Changed units.Instant
	// Attempt is the attempt's number. Started is the instant at which its container began to run.
	// Running means that it was not asked to stop.
	Attempt int
	Started units.Instant
	Running bool
	// Beside are the tasks on its GPUs, in order of number.
	Beside []model.TaskID
	// Predicted is its predicted slowdown beside them, by the model and the learned
	// corrections; 1 means as fast as alone.
	Predicted float64
	// Measured is its slowdown according to its output, with its relative standard error, or 0 if
	// its speed was not measured both alone and beside these neighbours.
	Measured, Error float64
	// Left is its expected remaining run time. Ends is false if its run time is not
	// known.
	Left time.Duration
	Ends bool
}

// Speed returns the speed of a task, or false if its container does not run.
func (pr *Predictor) Speed(id model.TaskID) (SpeedView, bool) {
	t := pr.TaskByID(id)
	if t == nil || t.Current() == nil || t.Current().Started == 0 {
		return SpeedView{}, false
	}
	g := SpeedView{Attempt: t.Current().N, Started: t.Current().Started, Running: t.Phase == model.Running, Predicted: 1 / t.Speed}
	for _, grant := range t.Current().Grants {
		gpu := pr.GPU(grant.GPU)
		g.Changed = max(g.Changed, gpu.ChangedAt)
		for i := range gpu.Residents {
			if other := gpu.Residents[i].Task; other != id {
				g.Beside = append(g.Beside, other)
			}
		}
	}
	g.Since = g.Changed.Add(model.SettleTime)
	slices.Sort(g.Beside)
	g.Beside = slices.Compact(g.Beside)
	if p := &t.Pace; p.Measured && p.Rate > 0 && p.Since >= g.Since {
		g.Measured, g.Error = p.Alone/p.Rate, math.Hypot(p.Error, p.RateError)
		if len(g.Beside) == 0 {
			g.Measured, g.Error = 1, 0
		}
	}
	left, basis := pr.WorkLeft(t, t.DoneBy(pr.Now()))
	g.Left, g.Ends = time.Duration(min(left/t.Speed, 1e9)*float64(time.Second)), basis != Guessed
	return g, true
}
