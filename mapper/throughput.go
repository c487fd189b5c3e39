package mapper

import (
	"math"
	"time"

	"carma/internal/units"
)

// throughputState is how fast a task's output says that its current attempt goes.
type throughputState struct {
	// Alone is the rate that it has, or would have, alone on its GPUs, in its own
	// unit per second; Error is its relative standard deviation.
	Alone float64 `json:"alone,omitempty"`
	Error float64 `json:"error,omitempty"`
	// Measured: the task was seen alone. Else Alone follows from a prediction.
	Measured bool `json:"measured,omitempty"`
	// Unit names the unit of the rates. Rates of different units say nothing about
	// each other.
	Unit string `json:"unit,omitempty"`
	// Steps: the unit is training steps.
	Steps bool `json:"steps,omitempty"`
	// Rate is the latest rate, measured from Since to At. Share is how much of
	// the work was done At; 0: not known.
	Rate      float64 `json:"rate,omitempty"`
	RateError float64 `json:"rate_error,omitempty"`
	Share     float64 `json:"share,omitempty"`
	// Whole is how long the attempt would take alone, by that share; 0: not known.
	Whole time.Duration `json:"whole,omitempty"`
	Since units.Instant `json:"since,omitempty"`
	At    units.Instant `json:"at,omitempty"`
}

// throughputReported learns from how fast tasks go: what they do to each other.
func (s *State) throughputReported(ev ThroughputReported) {
	for _, p := range ev.Tasks {
		t := s.tasks[p.Task]
		if t == nil || t.Current() == nil || t.Current().N != p.Attempt || t.Phase != Running || !(p.Rate >= leastRate && p.Rate <= mostRate) {
			continue
		}
		if p.Unit != t.Pace.Unit {
			t.Pace = throughputState{Unit: p.Unit, Whole: t.Pace.Whole}
		}
		if !t.Pace.Measured && p.Alone >= leastRate && p.Alone <= mostRate {
			t.Pace.Alone, t.Pace.Error, t.Pace.Measured = p.Alone, max(leastPaceError, score(p.AloneError)), true
		}
		t.Pace.Rate, t.Pace.Share, t.Pace.Since, t.Pace.At, t.Pace.Steps = p.Rate, score(p.Share), min(p.Since, s.now), s.now, p.Steps
		t.Pace.RateError = max(leastPaceError, score(p.Error))
		for _, grant := range t.Current().Grants {
			s.byID[grant.GPU].markDirty()
			s.active(s.byID[grant.GPU].resident(t.ID))
		}
		s.compare(t, p)
		s.stepTimeReported(t)
		if done := t.doneBy(s.now); t.Pace.Share >= leastDone && done > 0 {
			t.Pace.Whole = time.Duration(done / t.Pace.Share * float64(time.Second))
			for _, grant := range t.Current().Grants {
				s.byID[grant.GPU].forget()
			}
		}
	}
}

// A rate outside these bounds, in work per second, makes no sense.
const (
	leastRate = 1e-12
	mostRate  = 1e15
)

// leastPaceError is the least error of a rate that is believed.
const leastPaceError = 0.02

// compare follows the rate of a task with the neighbours it has now. Output
// tells no speed by itself: what can be compared is a rate with that of another
// time, alone or beside others.
func (s *State) compare(t *Task, p Throughput) {
	alone := true
	for _, grant := range t.Current().Grants {
		g := s.byID[grant.GPU]
		if p.Since < g.ChangedAt {
			return // in part it was measured beside other neighbours
		}
		if s.unseen(g) != 0 && !s.settled(g) {
			return // it counts as soon as samples show the newcomer
		}
		alone = alone && len(g.Residents) == 1
	}
	err := t.Pace.RateError
	switch {
	case alone:
		t.Pace.Alone, t.Pace.Error, t.Pace.Measured = p.Rate, err, true
	case t.Pace.Alone == 0 && p.Steps && len(t.Expected.Loads) > 0 && t.Expected.Loads[0].Step > 0:
		t.Pace.Alone, t.Pace.Error = 1/t.Expected.Loads[0].Step, toldStepError
		s.correct(t, math.Log(p.Rate/t.Pace.Alone), math.Hypot(err, t.Pace.Error))
	case t.Pace.Alone == 0:
		t.Pace.Alone, t.Pace.Error = p.Rate/t.Speed, math.Hypot(err, predictedError(t.Speed))
	default:
		s.correct(t, math.Log(p.Rate/t.Pace.Alone), math.Hypot(err, t.Pace.Error))
	}
}

// toldStepError is the relative error of the time of a training step that is told
// of a model.
const toldStepError = 0.1

// predictedError is the relative error of a predicted speed: little where hardly
// anything is in the way.
func predictedError(speed float64) float64 {
	return leastPredictedError + predictedErrorSlope*(1-speed)
}

const (
	leastPredictedError = 0.03
	predictedErrorSlope = 0.5
)

// leastDone is the least share done that says how long a task takes.
const leastDone = 0.02
