package predict

import (
	"time"

	"carma/mapper/ledger"
)

// Predictor holds the data learned from earlier runs, and predicts run times, loads and memory
// from it.
type Predictor struct {
	*ledger.Ledger
	times
	growth
	pairs         pairs
	declaredError declaredError
	classCounts   classCounts

	derived predictCache
	byUser  bool        // some GPU has SharingUsers; derived from the GPUs
	speeds  [16]float64 // working space
}

// predictCache holds values that are computed from the rest of a predictor and from the tasks.
type predictCache struct {
	mpsDomains map[mpsDomain]int32 // numbers of the MPS domains
	learned    int                 // incremented when expectations change; starts at 1
	ages       ages
	measured   []EstimateError
}

// New returns a predictor of the tasks of a ledger that has learned nothing.
func New(l *ledger.Ledger) *Predictor {
	return &Predictor{Ledger: l, times: times{Ledger: l, version: 1}, growth: growth{Ledger: l}, derived: predictCache{learned: 1}}
}

// Clone returns a copy for a copy of the ledger.
func (pr *Predictor) Clone(l *ledger.Ledger) *Predictor {
	c := New(l)
	c.byUser = pr.byUser
	c.history, c.growth.seen, c.declaredError = make(history, len(pr.history)), pr.growth.seen, pr.declaredError
	for i, e := range pr.history {
		c.history[i] = new(*e)
	}
	c.pairs, c.classCounts, c.guess = pr.pairs.clone(), pr.classCounts.clone(), make(map[string]time.Duration, len(pr.guess))
	for family, guess := range pr.guess {
		c.guess[family] = guess
	}
	return c
}

// DropDerived drops all cached values, and increments the versions, so that values computed
// from them elsewhere become invalid.
func (pr *Predictor) DropDerived() {
	pr.derived = predictCache{learned: pr.derived.learned + 1}
	pr.times.drop()
}

// Version is incremented whenever the expectations of tasks change.
func (pr *Predictor) Version() int { return pr.derived.learned }

// KindNumber returns the number of a kind among the measured pairs, or 0 if it is in none.
func (pr *Predictor) KindNumber(kind string) int32 { return pr.pairs.number(kind) }

// Snapshot is the predictor's section of a snapshot.
type Snapshot struct {
	History       history                  `json:"history,omitempty"`
	Pairs         PairsSnapshot            `json:"pairs,omitzero"`
	Growth        MemoryGrowth             `json:"growth,omitzero"`
	DeclaredError declaredError            `json:"told,omitzero"`
	Guesses       map[string]time.Duration `json:"guesses,omitempty"`
	Population    classCounts              `json:"population,omitzero"`
}

// Save returns the section of the snapshot. Its lists are shared: do not change them.
func (pr *Predictor) Save() Snapshot {
	return Snapshot{History: pr.history, Pairs: pr.pairs.snapshot(), Growth: pr.growth.seen, DeclaredError: pr.declaredError, Guesses: pr.guess, Population: pr.classCounts}
}

// Restore replaces the learned data by a section of a snapshot, or returns an error if the
// section is inconsistent.
func (pr *Predictor) Restore(snap Snapshot) error {
	pr.history, pr.growth.seen, pr.declaredError, pr.classCounts = snap.History, snap.Growth, snap.DeclaredError, snap.Population.clone()
	if err := pr.history.audit(); err != nil {
		return err
	}
	if err := pr.pairs.restore(snap.Pairs); err != nil {
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
