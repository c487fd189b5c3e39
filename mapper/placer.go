package mapper

import (
	"carma/mapper/ledger"
	"carma/mapper/model"
	"carma/mapper/policy"
	"carma/mapper/predict"
	"carma/mapper/queue"
	"carma/mapper/reserve"
)

// placer finds the GPUs for a task: it filters and scores them, and the policy chooses.
// It changes nothing but its cache.
type placer struct {
	*ledger.Ledger
	predictor *predict.Predictor
	queue     *queue.Queue
	reserve   *reserve.Reservations
	policy    *policy.Policy
	scorer    *scorer
	ring      int // round-robin's position in the list of GPUs

	cache    cache
	rejected ledger.PerTask[rejectedAt]

	// Working space.
	there    []predict.TaskForecast
	fitting  []*model.GPU
	openGPUs []*model.GPU
}

func newPlacer(l *ledger.Ledger, pr *predict.Predictor, q *queue.Queue, rs *reserve.Reservations, p *policy.Policy) *placer {
	return &placer{Ledger: l, predictor: pr, queue: q, reserve: rs, policy: p, scorer: &scorer{Ledger: l, predictor: pr}}
}

// tried returns the result of a waiting task's last try.
func (pl *placer) tried(t *model.Task) *rejectedAt { return pl.rejected.Of(t) }

// retry has a waiting task tried on every GPU again, because it or its request has
// changed.
func (pl *placer) retry(t *model.Task) {
	*pl.tried(t) = rejectedAt{}
	*pl.scorer.numbers.Of(t) = taskCandidates{}
}

// loadChanged has a waiting task's load and run time predicted again.
func (pl *placer) loadChanged(t *model.Task) { pl.scorer.numbers.Of(t).version = 0 }

// predicts reports whether the policy places tasks by predictions.
func (pl *placer) predicts() bool { return pl.policy.Pick != nil }

// reconsider has rejected tasks tried on a GPU again, although it may look as before.
func (pl *placer) reconsider(g *model.GPU) { cacheOf(g).state = gpuState{} }

// placerSnapshot is the placer's section of a snapshot.
type placerSnapshot struct {
	Ring int `json:"ring,omitempty"`
}

func (pl *placer) snapshot() placerSnapshot { return placerSnapshot{pl.ring} }

func (pl *placer) restore(snap placerSnapshot) {
	pl.inventoryChanged(nil)
	if snap.Ring > 0 && snap.Ring < len(pl.GPUList()) {
		pl.ring = snap.Ring
	}
}
