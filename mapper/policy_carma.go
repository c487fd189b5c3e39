package mapper

import (
	"math"
	"slices"
	"time"

	"carma/mapper/ledger"
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
	// avoidCost is added, in seconds, for a GPU on which the task's
	// infrastructure has failed. The GPU is taken only if others are worse.
	avoidCost = 3600
)

// refusal says why policy carma rejects a placement.
type refusal struct {
	rule model.Rule
	// For RuleSlowdown: the slowdown of a task, the most allowed, and the task, or 0 for
	// the candidate.
	slowdown, most float64
	task           model.TaskID
}

// slowdownGate is the filter of policy carma: it rejects a GPU that takes none of the
// task's parts.
func (pl *placer) slowdownGate(t *model.Task, g *model.GPU) (rule model.Rule) {
	if pl.closedTo(t, g) != 0 {
		return model.RuleUnseen
	}
	for _, id := range pl.candidatesOf(t) {
		if rule = pl.slowdownRule(g, id); rule == "" {
			break
		}
	}
	return rule
}

// closedTo returns the task that keeps t off a GPU regardless of the other residents, or
// 0. It is a task whose activity is not known yet. If the activity of t is not known
// either, a task whose speed is not known yet also counts.
func (pl *placer) closedTo(t *model.Task, g *model.GPU) model.TaskID {
	if id := pl.predictor.TaskOfUnknownLoad(g); id != 0 || len(t.Expected.Loads) > 0 {
		return id
	}
	return pl.untold(g)
}

// untold returns a task on a GPU whose activity was measured there and whose output has
// not shown its speed yet, within tellWithin of its start, or 0. Each further task with
// unknown load would make it less clear which task slows down which.
func (pl *placer) untold(g *model.GPU) model.TaskID {
	for i := range g.Residents {
		r := &g.Residents[i]
		if r.Doubt <= 0 {
			continue
		}
		if t := pl.TaskByID(r.Task); t.Pace.Rate == 0 && pl.Now() < t.Current().Started.Add(tellWithin) {
			return t.ID
		}
	}
	return 0
}

// tellWithin is the time after its start within which the output of a task is expected to
// show its speed.
const tellWithin = 3 * time.Minute

// refusal returns the result of slowdownGate with its figures.
func (pl *placer) refusal(t *model.Task, g *model.GPU) (no refusal) {
	if id := pl.closedTo(t, g); id != 0 {
		return refusal{rule: model.RuleUnseen, task: id}
	}
	for _, id := range pl.candidatesOf(t) {
		if _, no = pl.weigh(g, id); no.rule == "" {
			break
		}
	}
	return no
}

// leastAdded picks the GPUs, all of one machine, on which a task adds least to the sum of
// all completion times: its own time plus the delay of its neighbours. A task on several
// GPUs gets GPUs that are close to each other, if any take it.
func (pl *placer) leastAdded(t *model.Task, fitting []*model.GPU) []*model.GPU {
	if t.GPUs > 1 {
		for _, group := range ledger.Closeness {
			if best := pl.leastAddedAmong(t, ledger.Near(t.GPUs, fitting, group)); best != nil && !slices.ContainsFunc(best, t.Avoids) {
				return best
			}
		}
	}
	var machines [][]*model.GPU
	for len(fitting) > 0 {
		n := 1
		for n < len(fitting) && fitting[n].Node == fitting[0].Node {
			n++
		}
		machines = append(machines, fitting[:n])
		fitting = fitting[n:]
	}
	return pl.leastAddedAmong(t, machines)
}

// leastAddedAmong picks among groups of GPUs.
func (pl *placer) leastAddedAmong(t *model.Task, groups [][]*model.GPU) (best []*model.GPU) {
	least := math.Inf(1)
	for _, some := range groups {
		if gpus, added := pl.leastAddedOf(t, some); added < least {
			best, least = gpus, added
		}
	}
	return best
}

// leastAddedOf picks the GPUs one after the other, because the task may load each of
// them differently.
func (pl *placer) leastAddedOf(t *model.Task, fitting []*model.GPU) (picked []*model.GPU, total float64) {
	for _, id := range pl.candidatesOf(t) {
		var best *model.GPU
		least := math.Inf(1)
		for _, g := range fitting {
			if slices.Contains(picked, g) {
				continue
			}
			added, no := pl.added(g, id)
			if t.Avoids(g) {
				added += avoidCost
			}
			if no == "" && added < least {
				best, least = g, added
			}
		}
		if best == nil {
			return nil, math.Inf(1)
		}
		picked = append(picked, best)
		total += least
	}
	return picked, total
}

// weigh predicts the seconds that a placement adds to the sum of all completion times. If
// the placement is not allowed, the refusal says why.
func (pl *placer) weigh(g *model.GPU, id int) (float64, refusal) {
	a := pl.score(g, id)
	if g.Idle() { // always allowed, whatever other processes do there: otherwise the task might never start
		return a.added, refusal{}
	}
	return a.added, a.no
}

// beside scores a candidate beside the tasks of a GPU, whose forecast is known. With
// verdict only the rule of the result is needed, and the rest may be missing.
func (pl *placer) beside(g *model.GPU, there []predict.TaskForecast, n *candidate, verdict bool) (a scoreResult) {
	on := pl.predictor.SharingMode(g)
	with := append(append(pl.with[:0], there...), predict.TaskForecast{SM: n.load.SMACT, Demand: n.demand, WorstDemand: n.worst, Left: n.left, Elsewhere: 1, Basis: n.basis})
	pl.with = with
	most := pl.predictor.PredictedCap()
	if verdict && !on.Forecast(with, pl.bounds(there, with, most-capMargin, false)) {
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
		a.no, a.rough = pl.worstBeside(on, there, with, most, verdict)
	}
	if a.no.rule == "" && first+n.left < waitFactor*a.added {
		a.no = refusal{rule: model.RuleWait}
	}
	return a
}

// worstBeside checks the likely worst case of a placement.
func (pl *placer) worstBeside(on predict.SharingMode, there, with []predict.TaskForecast, most float64, verdict bool) (no refusal, rough bool) {
	late := predict.Pessimistic(pl.late[:0], with)
	pl.late = late
	if verdict && !on.Forecast(late, pl.bounds(there, late, most, true)) {
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
func (pl *placer) bounds(there, with []predict.TaskForecast, most float64, worst bool) []predict.Bound {
	all := pl.ends[:0]
	for i := range with {
		b := most
		if i < len(there) {
			b = max(most, there[i].SlowdownForCap()+slowAlready)
		}
		all = append(all, with[i].Within(b, worst))
	}
	pl.ends = all
	return all
}
