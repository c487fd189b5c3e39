package runner

import (
	"context"
	"sync"
	"time"

	"carma/mapper/model"
	"carma/runner/record"
)

// stopOrder returns how a task must be stopped: as requested, or else with the task's
// grace, from now on.
func (r *Runner) stopOrder(task model.TaskID) record.StopOrder {
	rec, _ := r.records.Get(task)
	if rec != nil && rec.Stop != nil {
		return *rec.Stop
	}
	return record.StopOrder{At: time.Now(), Grace: r.grace(rec)}
}

// grace returns the time that a task gets between the stop signal and the kill.
func (r *Runner) grace(rec *record.Record) time.Duration {
	if rec != nil && rec.Submit.StopGrace > 0 {
		return rec.Submit.StopGrace
	}
	return r.live().StopGrace
}

// stopper signals to a worker that its attempt must end, and when. Safe for concurrent use.
type stopper struct {
	mu      sync.Mutex
	kill    time.Time     // when the attempt must be killed, or zero
	asked   chan struct{} // closed at the first order
	changed chan struct{} // closed and replaced when the kill comes sooner
}

func newStopper() *stopper {
	return &stopper{asked: make(chan struct{}), changed: make(chan struct{})}
}

// order asks for the end. A later order counts only if it brings the kill
// forward.
func (s *stopper) order(o record.StopOrder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	kill := now.Add(o.Left(now))
	switch {
	case s.kill.IsZero():
		close(s.asked)
	case !kill.Before(s.kill):
		return
	}
	s.kill = kill
	close(s.changed)
	s.changed = make(chan struct{})
}

// left returns the time until the kill, and a channel that is closed when this time
// becomes shorter.
func (s *stopper) left() (time.Duration, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Until(s.kill), s.changed
}

func (w *worker) stopRequested() bool {
	select {
	case <-w.stop.asked:
		return true
	default:
		return false
	}
}

// Pauses between two tries to stop a container, and how long an engine may take
// for a stop signal.
const (
	stopAgain   = time.Second
	stopAtMost  = 30 * time.Second
	signalLimit = 5 * time.Second
)

// stopWhenAsked stops the container when the mapper wants it to end. It sends the stop signal,
// waits for the grace period, and kills the container. It repeats these steps if a call fails.
// ctx ends when the engine has reported the container's end.
func (w *worker) stopWhenAsked(ctx context.Context, id string) {
	select {
	case <-ctx.Done():
		return
	case <-w.stop.asked:
	}
	if left, _ := w.stop.left(); left > 0 {
		select { // a running suspend is undone, so that the program gets the signal
		case <-w.aside.over:
		case <-time.After(left):
		case <-ctx.Done():
		}
	}
	signalled, pause := false, stopAgain
	for ctx.Err() == nil {
		w.thawIfFrozen(ctx, id)
		left, sooner := w.stop.left()
		var err error
		switch {
		case left <= 0:
			w.mps.Disconnect(ctx, w.ownsProcess)
			err = w.deps.Driver.Kill(ctx, id)
		case !signalled:
			short, cancel := context.WithTimeout(ctx, min(left, signalLimit))
			err = w.deps.Driver.Signal(short, id)
			cancel()
			signalled = err == nil
		}
		if err != nil && ctx.Err() == nil {
			w.deps.Log.Warn().Err(err).Int64("task", int64(w.launch.Task)).Msg("the container could not be stopped; it is tried again")
		}
		wait := pause
		if left, _ := w.stop.left(); left > 0 && (signalled || left < pause) {
			wait = left
		} else {
			pause = min(2*pause, stopAtMost)
		}
		select {
		case <-ctx.Done():
		case <-sooner:
			pause = stopAgain
		case <-time.After(wait):
		}
	}
}

// kill ends a container that must not run, and returns when it has ended.
func (w *worker) kill(ctx context.Context, id string) error {
	if err := w.deps.Engine.Insist(ctx, func() error { return w.deps.Driver.Kill(ctx, id) }); err != nil {
		return err
	}
	_, err := w.deps.Engine.Retry(ctx, func() error { _, err := w.deps.Driver.Wait(ctx, id); return err })
	return err
}
