package place

import (
	"carma/mapper/ledger"
	"carma/mapper/model"
	"carma/mapper/policy"
	"carma/mapper/predict"
	"carma/mapper/queue"
	"carma/mapper/reserve"
)

// Placer finds the GPUs for a task: it filters and scores them, and the policy chooses.
// It changes nothing but its cache.
type Placer struct {
	*ledger.Ledger
	predictor *predict.Predictor
	queue     *queue.Queue
	reserve   *reserve.Reservations
	policy    *policy.Policy
	scorer    *scorer
	*tracker
	ring int // round-robin's position in the list of GPUs

	asked      int // how often a GPU was asked for a task
	rejected   ledger.PerTask[rejectedAt]
	rejections rejectedCache
	dropped    int // the tracker's clock when all rejections were last dropped

	// Working space.
	there    []predict.TaskForecast
	fitting  []*model.GPU
	openGPUs []*model.GPU
}

// New returns a placer for a policy. Nothing has been placed.
func New(l *ledger.Ledger, pr *predict.Predictor, q *queue.Queue, rs *reserve.Reservations, p *policy.Policy) *Placer {
	sc := &scorer{Ledger: l, predictor: pr}
	tr := &tracker{Ledger: l, predictor: pr, reserve: rs, scorer: sc, predicts: p.Pick != nil}
	return &Placer{Ledger: l, predictor: pr, queue: q, reserve: rs, policy: p, scorer: sc, tracker: tr}
}

// Clone returns a copy over other parts, without cached results.
func (pl *Placer) Clone(l *ledger.Ledger, pr *predict.Predictor, q *queue.Queue, rs *reserve.Reservations) *Placer {
	c := New(l, pr, q, rs, pl.policy)
	c.ring = pl.ring
	return c
}

// tried returns the result of a waiting task's last try.
func (pl *Placer) tried(t *model.Task) *rejectedAt { return pl.rejected.Of(t) }

// Retry has a waiting task tried on every GPU again, because it or its request has
// changed.
func (pl *Placer) Retry(t *model.Task) {
	*pl.tried(t) = rejectedAt{}
	*pl.scorer.numbers.Of(t) = taskCandidates{}
}

// LoadChanged has a waiting task's load and run time predicted again.
func (pl *Placer) LoadChanged(t *model.Task) { pl.scorer.numbers.Of(t).version = 0 }

// Predicts reports whether the policy places tasks by predictions.
func (pl *Placer) Predicts() bool { return pl.policy.Pick != nil }

// Snapshot is the placer's section of a snapshot.
type Snapshot struct {
	Ring int `json:"ring,omitempty"`
}

// Save returns the placer's section of a snapshot.
func (pl *Placer) Save() Snapshot { return Snapshot{pl.ring} }

// Restore sets the position of round-robin from a snapshot of equal GPUs.
func (pl *Placer) Restore(snap Snapshot) {
	pl.InventoryChanged(nil)
	if snap.Ring > 0 && snap.Ring < len(pl.GPUList()) {
		pl.ring = snap.Ring
	}
}
