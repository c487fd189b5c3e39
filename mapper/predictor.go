package mapper

import (
	"time"

	"carma/mapper/ledger"
	"carma/mapper/model"
)

// predictor holds what was learned from earlier runs, and predicts run times, loads and
// memory from it.
type predictor struct {
	*ledger.Ledger
	history       history
	pairs         pairs
	growth        memoryGrowth
	declaredError declaredError
	classCounts   classCounts
	guess         map[string]time.Duration // expected run times of tasks without history, by family

	derived predictCache
	byUser  bool        // a GPU has SharingUsers; follows from the GPUs
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
	runTimes   ledger.PerTask[expectedRun]
}

func newPredictor(l *ledger.Ledger) *predictor {
	return &predictor{Ledger: l, derived: predictCache{learned: 1, timed: 1}}
}

func (pr *predictor) clone(l *ledger.Ledger) *predictor {
	c := newPredictor(l)
	c.byUser = pr.byUser
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
func (pr *predictor) forget(t *model.Task) { *pr.derived.runTimes.Of(t) = expectedRun{} }

// predictorSnapshot is the predictor's section of a snapshot.
type predictorSnapshot struct {
	History    history                  `json:"history,omitempty"`
	Pairs      pairs                    `json:"pairs,omitzero"`
	Growth     memoryGrowth             `json:"growth,omitzero"`
	Told       declaredError            `json:"told,omitzero"`
	Guesses    map[string]time.Duration `json:"guesses,omitempty"`
	Population classCounts              `json:"population,omitzero"`
}

func (pr *predictor) snapshot() predictorSnapshot {
	return predictorSnapshot{History: pr.history, Pairs: pr.pairs, Growth: pr.growth, Told: pr.declaredError, Guesses: pr.guess, Population: pr.classCounts}
}

func (pr *predictor) restore(snap predictorSnapshot) error {
	pr.history, pr.pairs, pr.growth, pr.declaredError, pr.classCounts = snap.History, snap.Pairs, snap.Growth, snap.Told, snap.Population.clone()
	if err := pr.history.audit(); err != nil {
		return err
	}
	if pr.guess = snap.Guesses; pr.guess == nil { // older versions stored none
		for _, e := range pr.history {
			if e.known() {
				pr.guessAgain(e.Family)
			}
		}
	}
	return nil
}
