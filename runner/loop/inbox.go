package loop

import (
	"context"

	"carma/internal/units"
	"carma/mapper"
	"carma/mapper/model"
	"carma/runner/record"
	"carma/runner/request"
)

// Change is something for the loop to journal and apply.
type Change struct {
	// Events returns the events, given the present, and the records of tasks
	// that are new or changed. An error refuses the change.
	Events func(now units.Instant) ([]model.Event, []*record.Record, error)
	// Fresh is set if Events looks at the state, so that all earlier changes must be
	// applied before.
	Fresh bool
	// done, if not nil, receives nil once the events are durable and applied,
	// else the error. It has room for one.
	done chan error
	// Keep is set if the change has happened, whether or not it can be journaled now. The
	// loop tries to journal it until that succeeds.
	Keep bool
	// Vital is set if the change may use the journal's spare room when the disk is full.
	Vital bool
}

// Fact returns a change that has happened already.
func Fact(ev model.Event) *Change {
	return &Change{Keep: true, Events: func(units.Instant) ([]model.Event, []*record.Record, error) {
		return []model.Event{ev}, nil, nil
	}}
}

// Post hands a change to the loop. It returns false if the daemon is stopping.
func (l *Loop) Post(c *Change) bool {
	select {
	case l.inbox <- c:
		return true
	case <-l.work.Done():
		return false
	}
}

// Do posts a change and waits until it is durable and applied. If the daemon
// stops before, it returns [request.ErrStopping].
func (l *Loop) Do(ctx context.Context, c *Change) error {
	c.done = make(chan error, 1)
	if !l.Post(c) {
		return request.ErrStopping
	}
	select {
	case err := <-c.done:
		return err
	case <-l.work.Done():
	case <-ctx.Done():
		if !l.stopping.Load() {
			return ctx.Err()
		}
		// The daemon, not the client, cancelled the request. The outcome is known when
		// the loop has ended.
		select {
		case err := <-c.done:
			return err
		case <-l.work.Done():
		}
	}
	select {
	case err := <-c.done: // the loop answered the change before it ended
		return err
	default:
		return request.ErrStopping
	}
}

// Look runs f in the loop, where it may read the state. It returns when f has
// ended; an error means that f was not called.
func (l *Loop) Look(ctx context.Context, f func(*mapper.State)) error {
	done := make(chan struct{})
	select {
	case l.queries <- func() { f(l.state); close(done) }:
		<-done
		return nil
	case <-l.work.Done():
		return request.ErrStopping
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TryLook has f run in the loop if the loop waits for work now. It does not wait for f, and
// reports whether f will run.
func (l *Loop) TryLook(f func(*mapper.State)) bool {
	select {
	case l.queries <- func() { f(l.state) }:
		return true
	default:
		return false
	}
}

// Offer hands an event to the loop if the loop's inbox has room for it, and reports that. An
// event that was offered is not tried again if the disk is full.
func (l *Loop) Offer(ev model.Event) bool {
	c := Fact(ev)
	c.Keep = false
	select {
	case l.inbox <- c:
		return true
	default:
		return false
	}
}
