package attempt

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
func (a *Attempt) startIt(ctx context.Context, id string) error {
	a.connect(ctx, id)
	defer a.abortWhenAsked(ctx, id)()
	if a.startsLong() {
		ctx = containers.WithPlaced(ctx, a.onAccepted)
	}
	_, err := a.deps.Engine.Retry(ctx, func() error { return a.deps.Driver.Start(ctx, id) })
	if err == nil || ctx.Err() != nil || !a.hasRun(ctx, id) {
		return err
	}
	a.deps.Log.Warn().Err(err).Int64("task", int64(a.launch.Task)).Msg("the engine reported a failed start, but the container runs: it goes on")
	return nil
}

// startsLong reports whether the driver's Start signals before it returns that other
// containers may be started.
func (a *Attempt) startsLong() bool {
	_, ok := engine.As[containers.Aborter](a.deps.Driver)
	return ok
}

// abortWhenAsked aborts a running start when the task is stopped, if a start may take
// long. Call done when the start is over.
func (a *Attempt) abortWhenAsked(ctx context.Context, id string) (done func()) {
	aborter, ok := engine.As[containers.Aborter](a.deps.Driver)
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
		case <-a.stop.asked:
		}
		_, err := a.deps.Engine.Retry(ctx, func() error { return aborter.Abort(ctx, id) })
		if err != nil && ctx.Err() == nil {
			a.deps.Log.Warn().Err(err).Int64("task", int64(a.launch.Task)).Msg("its start cannot be ended; it is stopped when it runs")
		}
	}()
	return func() { cancel(); <-ended }
}

// hasRun reports whether the program of a container runs, or has run.
func (a *Attempt) hasRun(ctx context.Context, id string) bool {
	var found []containers.Container
	_, err := a.deps.Engine.Retry(ctx, func() (err error) { found, err = a.deps.Driver.List(ctx, a.identity()); return err })
	i := slices.IndexFunc(found, func(c containers.Container) bool { return c.ID == id })
	if err != nil || i < 0 {
		return false
	}
	if state := found[i].State; state != containers.StateExited {
		return state == containers.StateRunning
	}
	exit, err := a.deps.Driver.Wait(ctx, id) // the container has ended, so this does not wait
	return err == nil && exit.Error == "" && !exit.Started.IsZero()
}

// clearWithin is the time for which carma tries to remove a container whose start failed.
// After that the attempt ends even if the container remains.
const clearWithin = 2 * time.Minute

// clear removes the container of an attempt that could not begin, so that it is gone
// before the next attempt. left is the container's ID if it could not be removed in time.
// The removal is tried again when the end is stored, and at the next start of the daemon.
func (a *Attempt) clear(ctx context.Context, id string) (left string) {
	if id == "" || ctx.Err() != nil {
		return id
	}
	a.deps.Limiter.Clear(ctx, id)
	ctx, cancel := context.WithTimeout(ctx, clearWithin)
	defer cancel()
	if a.deps.Engine.Insist(ctx, func() error { return a.deps.Driver.Remove(ctx, id) }) != nil {
		return id
	}
	return ""
}

// mayCreate waits until no other container can have the attempt's number. It
// reports false if the attempt was stopped before.
func (a *Attempt) mayCreate(ctx context.Context) (bool, error) {
	select {
	case <-a.deps.Reconciled():
		return true, nil
	case <-a.stop.asked:
		return false, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// openPorts opens the container's ports if its engine does not do it, and records their
// addresses. closed removes the addresses.
func (a *Attempt) openPorts(ctx context.Context, id string) (closed func()) {
	key := a.key()
	publisher, can := engine.As[containers.Publisher](a.deps.Driver)
	if len(a.rec.Submit.Ports) == 0 || !can {
		return func() {}
	}
	var open []option.Port
	_, err := a.deps.Engine.Retry(ctx, func() error {
		return engine.Within(ctx, engine.AttachedLimit, "look for ports", func(ctx context.Context) (err error) { open, err = publisher.Ports(ctx, id); return err })
	})
	if err != nil && ctx.Err() == nil {
		a.deps.Log.Warn().Err(err).Int64("task", int64(a.launch.Task)).Msg("the ports of a task cannot be reached")
	}
	a.deps.Ports.Set(key, ports.ViewOpen(open))
	return func() { a.deps.Ports.Set(key, nil) }
}
