package mapper

import (
	"math"
	"time"

	"carma/mapper/model"
)

// throughputReported learns from the speeds of tasks how they slow each other down.
func (ln *learner) throughputReported(ev model.ThroughputReported) {
	for _, p := range ev.Tasks {
		t := ln.TaskByID(p.Task)
		if t == nil || t.Current() == nil || t.Current().N != p.Attempt || t.Phase != model.Running || !(p.Rate >= leastRate && p.Rate <= mostRate) {
			continue
		}
		if p.Unit != t.Pace.Unit {
			t.Pace = model.ThroughputState{Unit: p.Unit, Whole: t.Pace.Whole}
		}
		if !t.Pace.Measured && p.Alone >= leastRate && p.Alone <= mostRate {
			t.Pace.Alone, t.Pace.Error, t.Pace.Measured = p.Alone, max(leastPaceError, score(p.AloneError)), true
		}
		t.Pace.Rate, t.Pace.Share, t.Pace.Since, t.Pace.At, t.Pace.Steps = p.Rate, score(p.Share), min(p.Since, ln.Now()), ln.Now(), p.Steps
		t.Pace.RateError = max(leastPaceError, score(p.Error))
		for _, grant := range t.Current().Grants {
			ln.GPU(grant.GPU).Changed()
			ln.active(ln.GPU(grant.GPU).Resident(t.ID))
		}
		ln.compare(t, p)
		ln.stepTimeReported(t)
		if done := t.DoneBy(ln.Now()); t.Pace.Share >= leastDone && done > 0 {
			t.Pace.Whole = time.Duration(done / t.Pace.Share * float64(time.Second))
			for _, grant := range t.Current().Grants {
				ln.GPU(grant.GPU).InvalidateForecast()
			}
		}
	}
}

// A rate outside these bounds, in work per second, makes no sense.
const (
	leastRate = 1e-12
	mostRate  = 1e15
)

// leastPaceError is the least error assumed for a rate.
const leastPaceError = 0.02

// compare uses the rate of a task with its present neighbours. A rate alone gives no
// speed: it must be compared with the task's rate at another time, alone or beside
// others.
func (ln *learner) compare(t *model.Task, p model.Throughput) {
	alone := true
	for _, grant := range t.Current().Grants {
		g := ln.GPU(grant.GPU)
		if p.Since < g.ChangedAt {
			return // in part it was measured beside other neighbours
		}
		if ln.predictor.unseen(g) != 0 && !ln.predictor.settled(g) {
			return // the rate counts once samples show the new task
		}
		alone = alone && len(g.Residents) == 1
	}
	err := t.Pace.RateError
	switch {
	case alone:
		t.Pace.Alone, t.Pace.Error, t.Pace.Measured = p.Rate, err, true
	case t.Pace.Alone == 0 && p.Steps && len(t.Expected.Loads) > 0 && t.Expected.Loads[0].Step > 0:
		t.Pace.Alone, t.Pace.Error = 1/t.Expected.Loads[0].Step, toldStepError
		ln.correct(t, math.Log(p.Rate/t.Pace.Alone), math.Hypot(err, t.Pace.Error))
	case t.Pace.Alone == 0:
		t.Pace.Alone, t.Pace.Error = p.Rate/t.Speed, math.Hypot(err, predictedError(t.Speed))
	default:
		ln.correct(t, math.Log(p.Rate/t.Pace.Alone), math.Hypot(err, t.Pace.Error))
	}
}

// toldStepError is the relative error of the step time declared for a model.
const toldStepError = 0.1

// predictedError returns the relative error of a predicted speed: little if the task is
// hardly slowed down.
func predictedError(speed float64) float64 {
	return leastPredictedError + predictedErrorSlope*(1-speed)
}

const (
	leastPredictedError = 0.03
	predictedErrorSlope = 0.5
)

// leastDone is the least share done from which the run time is computed.
const leastDone = 0.02
