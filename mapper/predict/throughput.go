package predict

import (
	"math"
	"time"

	"carma/mapper/model"
)

// RecordRate stores the reported rate of a task. It returns false if the rate is implausible.
func (pr *Predictor) RecordRate(t *model.Task, p model.Throughput) bool {
	if !(p.Rate >= LeastRate && p.Rate <= MostRate) {
		return false
	}
	if p.Unit != t.Pace.Unit {
		t.Pace = model.ThroughputState{Unit: p.Unit, Whole: t.Pace.Whole}
	}
	if !t.Pace.Measured && p.Alone >= LeastRate && p.Alone <= MostRate {
		t.Pace.Alone, t.Pace.Error, t.Pace.Measured = p.Alone, max(leastPaceError, model.Fraction(p.AloneError)), true
	}
	t.Pace.Rate, t.Pace.Share, t.Pace.Since, t.Pace.At, t.Pace.Steps = p.Rate, model.Fraction(p.Share), min(p.Since, pr.Now()), pr.Now(), p.Steps
	t.Pace.RateError = max(leastPaceError, model.Fraction(p.Error))
	for _, grant := range t.Current().Grants {
		pr.GPU(grant.GPU).Changed()
		pr.active(pr.GPU(grant.GPU).Resident(t.ID))
	}
	return true
}

// RecordShareDone computes the run time of a task from the reported share of its work.
func (pr *Predictor) RecordShareDone(t *model.Task) {
	if done := t.DoneBy(pr.Now()); t.Pace.Share >= LeastDone && done > 0 {
		t.Pace.Whole = time.Duration(done / t.Pace.Share * float64(time.Second))
		for _, grant := range t.Current().Grants {
			pr.GPU(grant.GPU).InvalidateForecast()
		}
	}
}

// A rate outside these bounds, in work per second, is implausible.
const (
	LeastRate = 1e-12
	MostRate  = 1e15
)

// leastPaceError is the least error assumed for a rate.
const leastPaceError = 0.02

// Compare uses the rate of a task with its present neighbours. A rate alone gives no speed: it
// must be compared with the task's rate at another time, alone or beside others. If there is
// such a rate, Compare returns the GPU on which the task is slowest, and the tasks whose load
// was not known before.
func (pr *Predictor) Compare(t *model.Task, p model.Throughput) (at *model.GPU, known []*model.Task) {
	alone := true
	for _, grant := range t.Current().Grants {
		g := pr.GPU(grant.GPU)
		if p.Since < g.ChangedAt {
			return nil, nil // it was partly measured beside other neighbours
		}
		if pr.TaskOfUnknownLoad(g) != 0 && !pr.SamplesShowTasks(g) {
			return nil, nil // the rate counts once samples show the new task
		}
		alone = alone && len(g.Residents) == 1
	}
	err := t.Pace.RateError
	switch {
	case alone:
		t.Pace.Alone, t.Pace.Error, t.Pace.Measured = p.Rate, err, true
	case t.Pace.Alone == 0 && p.Steps && len(t.Expected.Loads) > 0 && t.Expected.Loads[0].Step > 0:
		t.Pace.Alone, t.Pace.Error = 1/t.Expected.Loads[0].Step, declaredStepError
		return pr.slowest(t), pr.correct(t, math.Log(p.Rate/t.Pace.Alone), math.Hypot(err, t.Pace.Error))
	case t.Pace.Alone == 0:
		t.Pace.Alone, t.Pace.Error = p.Rate/t.Speed, math.Hypot(err, predictedError(t.Speed))
	default:
		return pr.slowest(t), pr.correct(t, math.Log(p.Rate/t.Pace.Alone), math.Hypot(err, t.Pace.Error))
	}
	return nil, nil
}

// declaredStepError is the relative error of the step time declared for a model.
const declaredStepError = 0.1

// predictedError returns the relative error of a predicted speed. The error is small if the
// task is hardly slowed down.
func predictedError(speed float64) float64 {
	return leastPredictedError + predictedErrorSlope*(1-speed)
}

const (
	leastPredictedError = 0.03
	predictedErrorSlope = 0.5
)

// LeastDone is the least share done from which the run time is computed.
const LeastDone = 0.02
