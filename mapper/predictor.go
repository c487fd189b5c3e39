package mapper

import (
	"time"

	"carma/mapper/model"
)

// predictor holds what was learned from earlier runs, and predicts run times, loads and
// memory from it.
type predictor struct {
	*ledger
	history       history
	pairs         pairs
	growth        memoryGrowth
	declaredError declaredError
	classCounts   classCounts
	guess         map[string]time.Duration // expected run times of tasks without history, by family

	derived predictCache
	speeds  [16]float64 // working space
}

// predictCache holds what is derived from the rest of a predictor, and from the tasks.
type predictCache struct {
	mpsDomains map[mpsDomain]int32 // their numbers
	learned    int                 // incremented when expectations change; starts at 1
	timed      int                 // likewise, for expected run times alone
	runs       runTimes
	ages       ages
	measured   []EstimateError
	runTimes   perTask[expectedRun]
}

func newPredictor(l *ledger) *predictor {
	return &predictor{ledger: l, derived: predictCache{learned: 1, timed: 1}}
}

func (pr *predictor) clone(l *ledger) *predictor {
	c := newPredictor(l)
	c.history, c.growth, c.declaredError = make(history, len(pr.history)), pr.growth, pr.declaredError
	for i, e := range pr.history {
		c.history[i] = new(*e)
	}
	c.pairs, c.classCounts, c.guess = pr.pairs.clone(), pr.classCounts.clone(), make(map[string]time.Duration, len(pr.guess))
	for family, guess := range pr.guess {
		c.guess[family] = guess
	}
	return c
}

// forget drops what is derived from a task's request.
func (pr *predictor) forget(t *model.Task) { *pr.derived.runTimes.of(t) = expectedRun{} }
