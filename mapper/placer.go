package mapper

// placer finds the GPUs for a task: it filters and scores them, and the policy chooses.
// It changes nothing but its cache.
type placer struct {
	*ledger
	predictor *predictor
	queue     *schedulingQueue
	policy    *policy

	cache cache

	// Working space.
	with     []residentForecast
	late     []residentForecast
	there    []residentForecast
	ends     []bound
	fitting  []*GPU
	openGPUs []*GPU
}

func newPlacer(l *ledger, pr *predictor, q *schedulingQueue, p *policy) *placer {
	return &placer{ledger: l, predictor: pr, queue: q, policy: p}
}
