package runner

import (
	"carma/internal/failpoint"
	"carma/mapper/model"
	"carma/runner/attempt"
)

// resumeAttempts resumes every placed attempt of an earlier daemon. The containers may be
// missing, created, running or ended; each attempt determines the state of its own.
func (r *Runner) resumeAttempts() {
	failpoint.Hit("resume-begins")
	placed := r.resumeAll()
	if len(placed) > 0 {
		r.Log.Info().Int("tasks", len(placed)).Msg("taking over running tasks")
	}
	first := r.numbers.Next()
	r.running.Go(func() { r.reconciler.Sweep(r.work, placed, first, containerUse{r}) })
	r.side.Go(func() {
		r.sweepOutput(r.work, first)
		r.retention.CountOutput(r.work)
		r.suites.Output().Count()
		r.retention.Run(r.work, r.storeRegularly)
	})
}

// storeRegularly does what is due once a minute beside the removal of old tasks.
func (r *Runner) storeRegularly() {
	r.suites.Output().Expire()
	r.Logs.NoteLosses()
	r.keeping.Check()
	r.storeEnergy()
	if err := r.past.Drop(r.Clock.Time()); err != nil {
		r.Log.Debug().Err(err).Msg("the sums of an old day could not be dropped")
	}
}

// resumeAll resumes the attempts that do not run, and returns all placed attempts. Only the loop calls it.
func (r *Runner) resumeAll() (placed map[model.TaskID]int) {
	placed = map[model.TaskID]int{}
	for _, t := range r.loop.State().Tasks() {
		if rec, _ := r.records.Get(t.ID); rec != nil {
			r.prober.StartIfDue(rec)
		}
		a := t.Alive()
		if a == nil {
			continue
		}
		placed[t.ID] = a.N
		if r.attempts[t.ID] != nil {
			continue // this daemon has just launched the task
		}
		running := r.startAttempt(model.Launch{Task: t.ID, Attempt: a.N, Grants: a.Grants, Host: a.Host}, true)
		if o, ok := attempt.LastOrder(&t); ok {
			r.order(t.ID, o)
		}
		if a.Resized {
			running.Resize() // an earlier daemon may have died before it set the limits
		}
		failpoint.Hit("resume-worker-started")
		if t.Phase == model.Stopping {
			running.Stop(r.stopOrder(t.ID))
		}
	}
	return placed
}
