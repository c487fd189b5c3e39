package runner

import (
	"context"

	"carma/internal/units"
	"carma/mapper"
	"carma/mapper/model"
	"carma/runner/record"
	"carma/runner/request"
)

// change is something for the loop to journal and apply.
type change struct {
	// events returns the events, given the present, and the records of tasks
	// that are new or changed. An error refuses the change.
	events func(now units.Instant) ([]model.Event, []*record.Record, error)
	// fresh is set if events looks at the state, so that all earlier changes must be
	// applied before.
	fresh bool
	// done, if not nil, receives nil once the events are durable and applied,
	// else the error. It has room for one.
	done chan error
	// keep is set if the change has happened, whether or not it can be journaled now. The
	// loop tries to journal it until that succeeds.
	keep bool
	// vital is set if the change may use the journal's spare room when the disk is full.
	vital bool
}

// fact returns a change that has happened already.
func fact(ev model.Event) *change {
	return &change{keep: true, events: func(units.Instant) ([]model.Event, []*record.Record, error) {
		return []model.Event{ev}, nil, nil
	}}
}

// post hands a change to the loop. It returns false if the daemon is stopping.
func (r *Runner) post(c *change) bool {
	select {
	case r.inbox <- c:
		return true
	case <-r.work.Done():
		return false
	}
}

// do posts a change and waits until it is durable and applied. If the daemon
// stops before, it returns errStopping.
func (r *Runner) do(ctx context.Context, c *change) error {
	c.done = make(chan error, 1)
	if !r.post(c) {
		return errStopping
	}
	select {
	case err := <-c.done:
		return err
	case <-r.work.Done():
	case <-ctx.Done():
		if !r.stopping.Load() {
			return ctx.Err()
		}
		// The daemon, not the client, cancelled the request. The outcome is known when
		// the loop has ended.
		select {
		case err := <-c.done:
			return err
		case <-r.work.Done():
		}
	}
	select {
	case err := <-c.done: // the loop answered the change before it ended
		return err
	default:
		return errStopping
	}
}

// look runs f in the loop, where it may read the state. It returns when f has
// ended; an error means that f was not called.
func (r *Runner) look(ctx context.Context, f func(*mapper.State)) error {
	done := make(chan struct{})
	select {
	case r.queries <- func() { f(r.state); close(done) }:
		<-done
		return nil
	case <-r.work.Done():
		return errStopping
	case <-ctx.Done():
		return ctx.Err()
	}
}

var errStopping = &request.Error{Status: 503, Text: "the daemon is stopping; try again when it is back"}

// stateAccess gives the parts their access to the loop.
type stateAccess struct{ r *Runner }

// Look calls a func that may read the state.
func (a stateAccess) Look(ctx context.Context, f func(*mapper.State)) error { return a.r.look(ctx, f) }

// Offer hands an event to the loop, if the loop has time for it.
func (a stateAccess) Offer(ev model.Event) bool { return a.r.offer(ev) }
