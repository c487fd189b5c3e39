package runner

import (
	"context"
	"slices"
	"time"

	"carma/containers"
	"carma/containers/option"
	"carma/runner/engine"
	"carma/runner/ports"
)

// startIt starts the container. If the last call failed but the container runs, it has
// started, and an earlier answer was lost. If that container were removed, and the daemon
// died before the end is stored, the attempt would be started twice.
func (w *worker) startIt(ctx context.Context, id string) error {
	w.connect(ctx, id)
	defer w.abortWhenAsked(ctx, id)()
	if w.startsLong() {
		ctx = containers.WithPlaced(ctx, w.onAccepted)
	}
	_, err := w.deps.Engine.Retry(ctx, func() error { return w.deps.Driver.Start(ctx, id) })
	if err == nil || ctx.Err() != nil || !w.hasRun(ctx, id) {
		return err
	}
	w.deps.Log.Warn().Err(err).Int64("task", int64(w.launch.Task)).Msg("the engine reported a failed start, but the container runs: it goes on")
	return nil
}

// startsLong reports whether the driver's Start signals before it returns that other
// containers may be started.
func (w *worker) startsLong() bool {
	_, ok := engine.As[containers.Aborter](w.deps.Driver)
	return ok
}

// abortWhenAsked aborts a running start when the task is stopped, if a start may take
// long. Call done when the start is over.
func (w *worker) abortWhenAsked(ctx context.Context, id string) (done func()) {
	a, ok := engine.As[containers.Aborter](w.deps.Driver)
	if !ok {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-ctx.Done():
			return
		case <-w.stop.asked:
		}
		_, err := w.deps.Engine.Retry(ctx, func() error { return a.Abort(ctx, id) })
		if err != nil && ctx.Err() == nil {
			w.deps.Log.Warn().Err(err).Int64("task", int64(w.launch.Task)).Msg("its start cannot be ended; it is stopped when it runs")
		}
	}()
	return func() { cancel(); <-ended }
}

// hasRun reports whether the program of a container runs, or has run.
func (w *worker) hasRun(ctx context.Context, id string) bool {
	var found []containers.Container
	_, err := w.deps.Engine.Retry(ctx, func() (err error) { found, err = w.deps.Driver.List(ctx, w.identity()); return err })
	i := slices.IndexFunc(found, func(c containers.Container) bool { return c.ID == id })
	if err != nil || i < 0 {
		return false
	}
	if state := found[i].State; state != containers.StateExited {
		return state == containers.StateRunning
	}
	exit, err := w.deps.Driver.Wait(ctx, id) // the container has ended, so this does not wait
	return err == nil && exit.Error == "" && !exit.Started.IsZero()
}

// clearWithin is the time for which carma tries to remove a container whose start failed.
// After that the attempt ends even if the container remains.
const clearWithin = 2 * time.Minute

// clear removes the container of an attempt that could not begin, so that it is gone
// before the next attempt. left is the container's ID if it could not be removed in time.
// The removal is tried again when the end is stored, and at the next start of the daemon.
func (w *worker) clear(ctx context.Context, id string) (left string) {
	if id == "" || ctx.Err() != nil {
		return id
	}
	w.deps.Limiter.Clear(ctx, id)
	ctx, cancel := context.WithTimeout(ctx, clearWithin)
	defer cancel()
	if w.deps.Engine.Insist(ctx, func() error { return w.deps.Driver.Remove(ctx, id) }) != nil {
		return id
	}
	return ""
}

// mayCreate waits until no other container can have the attempt's number. It
// reports false if the attempt was stopped before.
func (w *worker) mayCreate(ctx context.Context) (bool, error) {
	select {
	case <-w.deps.Reconciled():
		return true, nil
	case <-w.stop.asked:
		return false, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// openPorts opens the container's ports if its engine does not do it, and records their
// addresses. closed removes the addresses.
func (w *worker) openPorts(ctx context.Context, id string) (closed func()) {
	key := w.key()
	publisher, can := engine.As[containers.Publisher](w.deps.Driver)
	if len(w.rec.Submit.Ports) == 0 || !can {
		return func() {}
	}
	var open []option.Port
	_, err := w.deps.Engine.Retry(ctx, func() error {
		return engine.Within(ctx, engine.AttachedLimit, "look for ports", func(ctx context.Context) (err error) { open, err = publisher.Ports(ctx, id); return err })
	})
	if err != nil && ctx.Err() == nil {
		w.deps.Log.Warn().Err(err).Int64("task", int64(w.launch.Task)).Msg("the ports of a task cannot be reached")
	}
	w.deps.Ports.Set(key, ports.ViewOpen(open))
	return func() { w.deps.Ports.Set(key, nil) }
}
