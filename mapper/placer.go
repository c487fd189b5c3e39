package mapper

import "carma/mapper/model"

// placer finds the GPUs for a task: it filters and scores them, and the policy chooses.
// It changes nothing but its cache.
type placer struct {
	*ledger
	predictor *predictor
	queue     *schedulingQueue
	policy    *policy

	cache    cache
	rejected perTask[rejectedAt]

	// Working space.
	with     []residentForecast
	late     []residentForecast
	there    []residentForecast
	ends     []bound
	fitting  []*model.GPU
	openGPUs []*model.GPU
}

func newPlacer(l *ledger, pr *predictor, q *schedulingQueue, p *policy) *placer {
	return &placer{ledger: l, predictor: pr, queue: q, policy: p}
}

// tried returns the result of a waiting task's last try.
func (pl *placer) tried(t *model.Task) *rejectedAt { return pl.rejected.of(t) }

// retry has a waiting task tried on every GPU again, because it or its request has
// changed.
func (pl *placer) retry(t *model.Task) { *pl.tried(t) = rejectedAt{} }

// reconsider has rejected tasks tried on a GPU again, although it may look as before.
func (pl *placer) reconsider(g *model.GPU) { cacheOf(g).state = gpuState{} }
