package runner

import (
	"context"
	"slices"
	"time"

	"carma/containers"
)

// startIt starts the container. One that runs although the engine has refused
// the last call has started: an earlier answer was lost. To remove it would have
// the attempt started twice, if the daemon died before it is stored that it has
// ended.
func (w *worker) startIt(ctx context.Context, id string) error {
	_, err := w.engine.retry(ctx, func() error { return w.Driver.Start(ctx, id) })
	if err == nil || ctx.Err() != nil || !w.hasRun(ctx, id) {
		return err
	}
	w.Log.Warn().Err(err).Int64("task", int64(w.launch.Task)).Msg("the container's start seems to have failed, and it has started: it goes on")
	return nil
}

// hasRun reports whether the program of a container runs, or has.
func (w *worker) hasRun(ctx context.Context, id string) bool {
	var found []containers.Container
	_, err := w.engine.retry(ctx, func() (err error) { found, err = w.Driver.List(ctx, w.identity()); return err })
	i := slices.IndexFunc(found, func(c containers.Container) bool { return c.ID == id })
	if err != nil || i < 0 {
		return false
	}
	if state := found[i].State; state != containers.StateExited {
		return state == containers.StateRunning
	}
	exit, err := w.Driver.Wait(ctx, id) // it has ended: this does not wait
	return err == nil && exit.Error == "" && !exit.Started.IsZero()
}

// clearWithin is how long a container whose start has failed may resist its
// removal, before its attempt ends all the same.
const clearWithin = 2 * time.Minute

// clear removes the container of an attempt that could not begin, so that it is
// gone before the next attempt can. left is what could not be removed in time:
// it is tried again when the end is stored, and at the next start.
func (w *worker) clear(ctx context.Context, id string) (left string) {
	if id == "" || ctx.Err() != nil {
		return id
	}
	w.unlimit(ctx, id)
	ctx, cancel := context.WithTimeout(ctx, clearWithin)
	defer cancel()
	if w.engine.insist(ctx, func() error { return w.Driver.Remove(ctx, id) }) != nil {
		return id
	}
	return ""
}
