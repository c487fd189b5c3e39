package runner

import (
	"context"
	"slices"
	"strconv"

	"carma/containers"
	"carma/estimator/probe"
	"carma/internal/failpoint"
	"carma/mapper"
	"carma/mapper/model"
)

// resumeAttempts starts a worker for every placed attempt of an earlier daemon. The containers
// may be missing, created, running or ended; each worker determines the state of its own.
func (r *Runner) resumeAttempts() {
	failpoint.Hit("resume-begins")
	placed := r.resumeWorkers()
	if len(placed) > 0 {
		r.Log.Info().Int("tasks", len(placed)).Msg("taking over running tasks")
	}
	first := r.nextID
	r.attempts.Go(func() { r.sweep(r.work, placed, first) })
	r.side.Go(func() {
		r.sweepOutput(r.work, first)
		r.retention.CountOutput(r.work)
		r.helperOut.count()
		r.retention.Run(r.work, r.storeRegularly)
	})
}

// storeRegularly does what is due once a minute beside the removal of old tasks.
func (r *Runner) storeRegularly() {
	r.helperOut.expire()
	r.Logs.NoteLosses()
	r.keeping.look(r)
	r.storeEnergy()
	if err := r.past.Drop(r.Clock.Time()); err != nil {
		r.Log.Debug().Err(err).Msg("the sums of an old day could not be dropped")
	}
}

// resumeWorkers starts the workers that are missing, and returns the placed
// attempts. Only the loop calls it.
func (r *Runner) resumeWorkers() (placed map[model.TaskID]int) {
	placed = map[model.TaskID]int{}
	for _, t := range r.loop.State().Tasks() {
		if rec, _ := r.records.Get(t.ID); rec != nil {
			r.probeIfDue(rec)
		}
		a := t.Alive()
		if a == nil {
			continue
		}
		placed[t.ID] = a.N
		if r.workers[t.ID] != nil {
			continue // this daemon has just launched the task
		}
		w := r.startWorker(model.Launch{Task: t.ID, Attempt: a.N, Grants: a.Grants, Host: a.Host}, true)
		if o, ok := orderAgain(&t); ok {
			r.order(t.ID, o)
		}
		if a.Resized {
			w.resizing.order() // an earlier daemon may have died before it set the limits
		}
		failpoint.Hit("resume-worker-started")
		if t.Phase == model.Stopping {
			w.stop.order(r.stopOrder(t.ID))
		}
	}
	return placed
}

// sweep removes containers of this daemon that belong to ended attempts, because an
// earlier daemon was killed before it could remove them. placed are the attempts that had
// not ended when placed was made. Newer containers and other owners' containers are left
// alone, see [Runner.refuseLeftover]. first is the first number that this daemon gives.
//
// sweep waits until the containers have been compared with the journal. Until then an
// orphan that will be adopted looks like a container of an ended attempt.
func (r *Runner) sweep(ctx context.Context, placed map[model.TaskID]int, first model.TaskID) {
	select {
	case <-r.lookout.over:
	case <-ctx.Done():
		return
	}
	var found []containers.Container
	_, err := r.engine.Retry(ctx, func() (err error) {
		found, err = r.Driver.List(ctx, map[string]string{LabelInstance: r.instance})
		return err
	})
	if err != nil {
		return
	}
	left, err := r.ignoredContainers()
	if err != nil {
		r.Log.Error().Err(err).Msg("left-over containers stay: the list of those to leave alone cannot be read")
		return
	}
	for _, c := range found {
		if slices.Contains(left, c.ID) {
			continue
		}
		task, err1 := strconv.ParseInt(c.Labels[LabelTask], 10, 64)
		if c.Labels[probe.Label] != "" && err1 == nil && r.probing(model.TaskID(task)) == "" {
			_, _ = r.engine.Retry(ctx, func() error { return r.Driver.Remove(ctx, c.ID) }) // if this fails, the probe still ends
			continue
		}
		attempt, err2 := strconv.Atoi(c.Labels[LabelAttempt])
		if err1 != nil || err2 != nil {
			continue
		}
		if task == 0 {
			r.sweepTrial(ctx, c)
			continue
		}
		if n, ok := placed[model.TaskID(task)]; ok && attempt >= n {
			continue
		}
		if !r.over(ctx, model.TaskID(task), attempt) {
			continue
		}
		if why := r.refuseLeftover(model.TaskID(task), c, first); why != "" {
			r.Log.Error().Int64("task", task).Str("container", c.Name).Str("state", string(c.State)).Msg("a container with this daemon's label is left alone: " + why)
			continue
		}
		if c.State == containers.StateRunning {
			r.Log.Warn().Int64("task", task).Str("container", c.Name).Msg("a container of an attempt that is over still runs; removing it")
		}
		failpoint.Hit("sweep-removes")
		r.thaw(ctx, c.ID, c.Name)
		r.clearLimits(ctx, c.ID)
		_, err := r.engine.Retry(ctx, func() error { return r.Driver.Remove(ctx, c.ID) })
		if err != nil && ctx.Err() == nil {
			r.Log.Warn().Err(err).Str("container", c.Name).Msg("a left-over container could not be removed")
		}
	}
}

// over reports whether an attempt has ended according to the state.
func (r *Runner) over(ctx context.Context, task model.TaskID, attempt int) bool {
	over := false
	err := r.loop.Look(ctx, func(s *mapper.State) {
		t, ok := s.Task(task)
		n := 0
		if ok && t.Last() != nil {
			n = t.Last().N
		}
		over = !ok || n > attempt || n == attempt && t.Alive() == nil
	})
	return err == nil && over
}

// refuseLeftover returns why a container of an attempt that is over must be left alone, or "" if
// it belongs to that attempt and may be removed. first is the first number that this daemon
// gives.
func (r *Runner) refuseLeftover(task model.TaskID, c containers.Container, first model.TaskID) string {
	rec, err := r.Find(task.String())
	switch {
	case isNotFound(err) && task >= first:
		return "its task is newer than this journal, which seems to be an older copy"
	case isNotFound(err) && c.State == containers.StateRunning:
		return "it runs, and its task was removed"
	case isNotFound(err):
		return ""
	case err != nil:
		return "its task cannot be looked up: " + err.Error()
	}
	if nonce := c.Labels[LabelNonce]; rec.Nonce != "" && nonce != rec.Nonce {
		return "it belongs to another task of this number, of another copy of the journal"
	}
	return ""
}
