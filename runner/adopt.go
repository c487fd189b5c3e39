package runner

import (
	"context"
	"errors"
	"slices"

	"carma/containers"
)

var errGone = errors.New("its container is gone: removed by somebody else, or the engine lost it")

// find returns the attempt's container, or nil if there is none. It retries until the
// engine answers.
func (w *worker) find(ctx context.Context) (*containers.Container, error) {
	var found []containers.Container
	err := w.deps.Engine.Insist(ctx, func() (err error) { found, err = w.deps.Driver.List(ctx, w.identity()); return err })
	if err != nil || len(found) == 0 {
		return nil, err
	}
	name := w.containerName()
	// If no name matches, somebody has renamed the container, and its labels decide.
	i := max(0, slices.IndexFunc(found, func(c containers.Container) bool { return c.Name == name }))
	return &found[i], nil
}

// adopt continues with a container that an earlier daemon has created. It keeps the
// container as it is: later changes of options, policy or grants do not matter. err is
// the error of the search for the container. If the attempt was stopped before its start,
// adopt removes the container and returns no ID.
func (w *worker) adopt(ctx context.Context, c *containers.Container, err error) (id string, _ error) {
	if err != nil {
		return "", err
	}
	w.adopted = c
	w.mps.Recall(ctx)
	w.memory.Recall(c.ID)
	if w.hasStarted() {
		return c.ID, nil
	}
	w.onCreated()
	// The earlier daemon died before the start, or before it had journaled it.
	if w.stopRequested() && c.State == containers.StateCreated {
		if _, err := w.deps.Engine.Retry(ctx, func() error { return w.deps.Driver.Remove(ctx, c.ID) }); err != nil {
			return c.ID, err
		}
		return "", nil
	}
	placed, err := w.deps.Places.Restore(ctx, w.rec, c) // the mounts must be in place before the container starts
	defer placed()
	if err != nil {
		return c.ID, err
	}
	if err := w.memory.Limit(ctx, c.ID); err != nil {
		if c.State == containers.StateCreated || ctx.Err() != nil {
			return c.ID, err
		}
		w.deps.Log.Warn().Err(err).Int64("task", int64(w.launch.Task)).Msg("the driver's limit of a running task could not be checked")
	}
	return c.ID, w.startIt(ctx, c.ID)
}

// hasStarted reports whether the journal has the attempt's start.
func (w *worker) hasStarted() bool {
	a := w.rec.Task.Last()
	return a != nil && a.Started != 0
}
