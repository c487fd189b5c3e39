package place

import (
	"carma/mapper/interference"
	"carma/mapper/ledger"
	"carma/mapper/model"
	"carma/mapper/predict"
)

// scorer predicts what a task adds on a GPU, and whether it or a neighbour becomes too
// slow. It owns the forecasts of the GPUs, the numbers of the candidates and their scores.
type scorer struct {
	*ledger.Ledger
	predictor *predict.Predictor

	candidates candidates
	table      scoreTable
	numbers    ledger.PerTask[taskCandidates]

	// Working space.
	with []predict.TaskForecast
	late []predict.TaskForecast
	ends []predict.Bound
}

// taskCandidates are the candidate numbers of a task, one for each of its GPUs.
type taskCandidates struct {
	version int // the predictor's version when they were computed
	ids     []int
}

// drop drops all results. The caller has the numbers of the tasks computed again.
func (sc *scorer) drop() {
	sc.candidates, sc.table = candidates{}, scoreTable{version: sc.table.version}
}

// full reports whether the results should be dropped, so that old candidates do not fill
// the memory.
func (sc *scorer) full() bool { return len(sc.candidates.all) >= maxCandidates }

// current returns the candidate numbers of a task if they are still valid, or nil.
func (sc *scorer) current(t *model.Task) []int {
	if n := sc.numbers.Of(t); n.version == sc.predictor.Version() {
		return n.ids
	}
	return nil
}

// candidatesOf computes the candidate numbers of a task, and reports whether they have
// changed.
func (sc *scorer) candidatesOf(t *model.Task) (ids []int, changed bool) {
	done := 0.0
	if t.Phase == model.Suspended {
		done = t.Done // its attempt continues
	}
	left, basis := sc.predictor.WorkLeft(t, done)
	if basis == predict.Guessed {
		left = predict.RoundRunTime(left)
	}
	n := sc.numbers.Of(t)
	if len(n.ids) != t.GPUs {
		n.ids, changed = make([]int, t.GPUs), true
	}
	key := candidateKey{doubt: sc.predictor.Doubt(t, t.Doubt), prior: sc.predictor.Prior(t), kind: sc.predictor.KindNumber(t.Kind), left: left, basis: basis, domain: sc.predictor.MPSDomainOf(t)}
	for i, before := range n.ids {
		key.load = t.LoadOn(i)
		if sc.candidates.is(before, &key) {
			continue // usually the change concerned other tasks
		}
		if id := sc.candidates.id(key, func(l interference.Load) predict.Demand { return sc.predictor.Demand(l, t) }); id != before {
			n.ids[i], changed = id, true
		}
	}
	n.version = sc.predictor.Version()
	return n.ids, changed
}
