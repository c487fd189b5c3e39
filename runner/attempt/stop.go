package attempt

import (
	"context"
	"sync"
	"time"

	"carma/runner/record"
)

// stopper signals that an attempt must end, and when. Safe for concurrent use.
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
func (a *Attempt) stopWhenAsked(ctx context.Context, id string) {
	select {
	case <-ctx.Done():
		return
	case <-a.stop.asked:
	}
	if left, _ := a.stop.left(); left > 0 {
		select { // a running suspend is undone, so that the program gets the signal
		case <-a.suspension.over:
		case <-time.After(left):
		case <-ctx.Done():
		}
	}
	signalled, pause := false, stopAgain
	for ctx.Err() == nil {
		a.suspension.thawIfFrozen(ctx, id)
		left, sooner := a.stop.left()
		var err error
		switch {
		case left <= 0:
			a.mps.Disconnect(ctx, a.ownsProcess)
			err = a.deps.Driver.Kill(ctx, id)
		case !signalled:
			short, cancel := context.WithTimeout(ctx, min(left, signalLimit))
			err = a.deps.Driver.Signal(short, id)
			cancel()
			signalled = err == nil
		}
		if err != nil && ctx.Err() == nil {
			a.deps.Log.Warn().Err(err).Int64("task", int64(a.launch.Task)).Msg("the container could not be stopped; it is tried again")
		}
		wait := pause
		if left, _ := a.stop.left(); left > 0 && (signalled || left < pause) {
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
