package place

import (
	"math"
	"time"

	"carma/mapper/model"
	"carma/mapper/predict"
)

// The constants of the scoring. README.md, "Policy carma, step by step", gives the source
// of each value.
const (
	// capMargin is subtracted from the cap for the expected slowdown: a margin
	// for errors of the prediction.
	capMargin = 0.05
	// slowAlready: if a slowdown already exceeds the cap, another task may raise it by
	// this much. It covers rounding.
	slowAlready = 0.01
	// waitFactor: a task waits for the first end on a GPU if that costs less
	// than this share of what sharing costs.
	waitFactor = 0.8
)

// refusal says why policy carma rejects a placement.
type refusal struct {
	rule model.Rule
	// For RuleSlowdown: the slowdown of a task, the most allowed, and the task, or 0 for
	// the candidate.
	slowdown, most float64
	task           model.TaskID
}

// closedTo returns the task that keeps t off a GPU regardless of the other residents, or
// 0. It is a task whose activity is not known yet. If the activity of t is not known
// either, a task whose speed is not known yet also counts.
func (sc *scorer) closedTo(t *model.Task, g *model.GPU) model.TaskID {
	if id := sc.predictor.TaskOfUnknownLoad(g); id != 0 || len(t.Expected.Loads) > 0 {
		return id
	}
	return sc.untold(g)
}

// untold returns a task on a GPU whose activity was measured there and whose output has
// not shown its speed yet, within [TellWithin] of its start, or 0. Each further task with
// unknown load would make it less clear which task slows down which.
func (sc *scorer) untold(g *model.GPU) model.TaskID {
	for i := range g.Residents {
		r := &g.Residents[i]
		if r.Doubt <= 0 {
			continue
		}
		if t := sc.TaskByID(r.Task); t.Pace.Rate == 0 && sc.Now() < t.Current().Started.Add(TellWithin) {
			return t.ID
		}
	}
	return 0
}

// TellWithin is the time after its start within which the output of a task is expected to
// show its speed.
const TellWithin = 3 * time.Minute

// refusal returns the result of the slowdown filter with its figures.
func (pl *Placer) refusal(t *model.Task, g *model.GPU) (no refusal) {
	if id := pl.scorer.closedTo(t, g); id != 0 {
		return refusal{rule: model.RuleUnseen, task: id}
	}
	for _, id := range pl.candidatesOf(t) {
		if _, no = pl.scorer.weigh(g, id); no.rule == "" {
			break
		}
	}
	return no
}

// weigh predicts the seconds that a placement adds to the sum of all completion times. If
// the placement is not allowed, the refusal says why.
func (sc *scorer) weigh(g *model.GPU, id int) (float64, refusal) {
	a := sc.score(g, id)
	if g.Idle() { // always allowed, whatever other processes do there: otherwise the task might never start
		return a.added, refusal{}
	}
	return a.added, a.no
}

// beside scores a candidate beside the tasks of a GPU, whose forecast is known. With
// verdict only the rule of the result is needed, and the rest may be missing.
func (sc *scorer) beside(g *model.GPU, there []predict.TaskForecast, n *candidate, verdict bool) (a scoreResult) {
	on := sc.predictor.SharingMode(g)
	with := append(append(sc.with[:0], there...), predict.TaskForecast{SM: n.load.SMACT, Demand: n.demand, WorstDemand: n.worst, Left: n.left, Elsewhere: 1, Basis: n.basis})
	sc.with = with
	most := sc.predictor.PredictedCap()
	if verdict && !on.Forecast(with, sc.bounds(there, with, most-capMargin, false)) {
		return scoreResult{rough: true, no: refusal{rule: model.RuleSlowdown}}
	}
	if !verdict {
		on.Forecast(with, nil)
	}
	first := math.Inf(1)
	for i := range with {
		before := 0.0
		if i < len(there) {
			before = there[i].SlowdownForCap() + slowAlready
			first = min(first, there[i].Finish)
			a.added -= there[i].Finish
		}
		a.added += with[i].Finish
		if expected := with[i].Slowdown(); a.no.rule == "" && expected > max(most-capMargin, before) {
			a.no = refusal{model.RuleSlowdown, expected, most - capMargin, with[i].Task}
		}
	}
	a.finish = with[len(there)].Finish
	if a.no.rule == "" {
		a.no, a.rough = sc.worstBeside(on, there, with, most, verdict)
	}
	if a.no.rule == "" && first+n.left < waitFactor*a.added {
		a.no = refusal{rule: model.RuleWait}
	}
	return a
}

// worstBeside checks the likely worst case of a placement.
func (sc *scorer) worstBeside(on predict.SharingMode, there, with []predict.TaskForecast, most float64, verdict bool) (no refusal, rough bool) {
	late := predict.Pessimistic(sc.late[:0], with)
	sc.late = late
	if verdict && !on.Forecast(late, sc.bounds(there, late, most, true)) {
		return refusal{rule: model.RuleSlowdown}, true
	}
	if !verdict {
		on.Forecast(late, nil)
	}
	for i := range late {
		before := 0.0
		if i < len(there) {
			before = there[i].SlowdownForCap() + slowAlready
		}
		if worst := late[i].SlowdownForCap(); worst > max(most, before) {
			return refusal{model.RuleSlowdown, worst, most, with[i].Task}, false
		}
	}
	return refusal{}, false
}

// bounds returns the bounds of the tasks there and of a candidate for a largest allowed
// slowdown.
func (sc *scorer) bounds(there, with []predict.TaskForecast, most float64, worst bool) []predict.Bound {
	all := sc.ends[:0]
	for i := range with {
		b := most
		if i < len(there) {
			b = max(most, there[i].SlowdownForCap()+slowAlready)
		}
		all = append(all, with[i].Within(b, worst))
	}
	sc.ends = all
	return all
}
