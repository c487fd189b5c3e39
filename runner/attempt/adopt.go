package attempt

import (
	"context"
	"errors"
	"slices"

	"carma/containers"
)

var errGone = errors.New("its container is gone: removed by somebody else, or the engine lost it")

// find returns the attempt's container, or nil if there is none. It retries until the
// engine answers.
func (a *Attempt) find(ctx context.Context) (*containers.Container, error) {
	var found []containers.Container
	err := a.deps.Engine.Insist(ctx, func() (err error) { found, err = a.deps.Driver.List(ctx, a.identity()); return err })
	if err != nil || len(found) == 0 {
		return nil, err
	}
	name := a.containerName()
	// If no name matches, somebody has renamed the container, and its labels decide.
	i := max(0, slices.IndexFunc(found, func(c containers.Container) bool { return c.Name == name }))
	return &found[i], nil
}

// adopt continues with a container that an earlier daemon has created. It keeps the
// container as it is: later changes of options, policy or grants do not matter. err is
// the error of the search for the container. If the attempt was stopped before its start,
// adopt removes the container and returns no ID.
func (a *Attempt) adopt(ctx context.Context, c *containers.Container, err error) (id string, _ error) {
	if err != nil {
		return "", err
	}
	a.adopted = c
	a.mps.Recall(ctx)
	a.memory.Recall(c.ID)
	if a.hasStarted() {
		return c.ID, nil
	}
	a.onCreated()
	// The earlier daemon died before the start, or before it had journaled it.
	if a.stopRequested() && c.State == containers.StateCreated {
		if _, err := a.deps.Engine.Retry(ctx, func() error { return a.deps.Driver.Remove(ctx, c.ID) }); err != nil {
			return c.ID, err
		}
		return "", nil
	}
	placed, err := a.deps.Places.Restore(ctx, a.rec, c) // the mounts must be in place before the container starts
	defer placed()
	if err != nil {
		return c.ID, err
	}
	if err := a.memory.Limit(ctx, c.ID); err != nil {
		if c.State == containers.StateCreated || ctx.Err() != nil {
			return c.ID, err
		}
		a.deps.Log.Warn().Err(err).Int64("task", int64(a.launch.Task)).Msg("the driver's limit of a running task could not be checked")
	}
	return c.ID, a.startIt(ctx, c.ID)
}

// hasStarted reports whether the journal has the attempt's start.
func (a *Attempt) hasStarted() bool {
	last := a.rec.Task.Last()
	return last != nil && last.Started != 0
}
