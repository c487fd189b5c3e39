package query

import (
	"context"
	"sync"
	"time"

	"carma/mapper"
	"carma/mapper/model"
	"carma/runner/api"
)

const (
	// expectedKept is the time for which an expected start is shown again, expectedTasks the
	// number of tasks for which one is kept.
	expectedKept, expectedTasks = 5 * time.Second, 500
	// expectAtMost is the number of unfinished tasks above which no start is forecast: a
	// copy of the state would take the loop more than some 10 ms.
	expectAtMost = 2000
	// copyAge is the wall-clock time for which a copy of the state is reused.
	copyAge = time.Second
)

// expectations caches the expected starts that callers asked for. One start is computed
// at a time.
type expectations struct {
	mu     sync.Mutex // guards all below
	last   map[model.TaskID]expectation
	then   *mapper.State // a copy of the state, brought up to the daemon's time
	copied time.Time     // wall clock
}

type expectation struct {
	at    time.Time // wall clock
	start *api.Start
}

// ExpectedStart returns the expected start of a pending task, or nil if unknown. The loop
// only copies the state.
func (r *Tasks) ExpectedStart(ctx context.Context, id model.TaskID) *api.Start {
	e := &r.expected
	e.mu.Lock()
	defer e.mu.Unlock()
	if old, have := e.last[id]; have && time.Since(old.at) < expectedKept {
		return old.start
	}
	if err := r.copyState(ctx, e); err != nil || e.then == nil {
		return nil
	}
	x := expectation{at: time.Now()}
	if from, to, ok := e.then.ExpectedStart(id); ok {
		now := e.then.Now()
		x.start = &api.Start{Earliest: now.Add(from).Time()}
		if to >= 0 {
			x.start.Latest = now.Add(to).Time()
		}
	}
	if e.last == nil || len(e.last) > expectedTasks {
		e.last = map[model.TaskID]expectation{}
	}
	e.last[id] = x
	return x.start
}

// copyState copies the state, unless that was done just now or it is too large.
func (r *Tasks) copyState(ctx context.Context, e *expectations) error {
	if time.Since(e.copied) < copyAge {
		return nil
	}
	e.then = nil
	err := r.c.Loop.Look(ctx, func(s *mapper.State) {
		if s.Unfinished() <= expectAtMost {
			e.then = s.Clone()
		}
	})
	if e.copied = time.Now(); e.then != nil {
		e.then.Step(model.TimerFired{At: r.c.Clock.Now()})
	}
	return err
}
