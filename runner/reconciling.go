package runner

import (
	"context"
	"strconv"

	"carma/containers"
	"carma/estimator/probe"
	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/label"
	"carma/runner/loop"
	"carma/runner/record"
)

// launchable returns whether containers can and may be started, and why not.
func (r *Runner) launchable() (up bool, why string) {
	if up, why = r.engine.Status(); !up {
		return false, why
	}
	why = r.reconciler.Reason()
	return why == "", why
}

// engineNow returns a change that reports the engine's state at the time when the loop
// applies it.
func (r *Runner) engineNow() *loop.Change {
	return &loop.Change{Keep: true, Events: func(now units.Instant) ([]model.Event, []*record.Record, error) {
		if r.draining.Load() {
			return nil, nil, nil // nothing is started anyway
		}
		up, why := r.launchable()
		return []model.Event{model.EngineChanged{At: now, Up: up, Reason: why}}, nil, nil
	}}
}

// containerUse implements [reconcile.Use].
type containerUse struct{ *Runner }

// InUse implements [reconcile.Use].
func (u containerUse) InUse(c containers.Container) bool {
	if c.Labels[probe.Label] == "" {
		return u.trials.Has(c.Name)
	}
	task, err := strconv.ParseInt(c.Labels[label.Task], 10, 64)
	return err == nil && u.prober.Doing(model.TaskID(task)) != ""
}

// Release implements [reconcile.Use].
func (u containerUse) Release(ctx context.Context, c containers.Container) {
	u.attemptDeps.Thaw(ctx, c.ID, c.Name)
	u.limiter.Clear(ctx, c.ID)
}
