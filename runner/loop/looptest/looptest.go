// Package looptest has a loop on a new journal, for the tests of the packages that use one.
package looptest

import (
	"context"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper"
	"carma/mapper/model"
	"carma/runner/clock"
	"carma/runner/journal"
	"carma/runner/loop"
	"carma/runner/record"

	"github.com/rs/zerolog"
)

// Hooks implements loop.Hooks for a daemon that carries nothing out.
type Hooks struct{}

// BeginBatch implements loop.Hooks.
func (Hooks) BeginBatch() {}

// Archive implements loop.Hooks.
func (Hooks) Archive([]model.TaskID) []journal.MetaRow { return nil }

// CarryOut implements loop.Hooks.
func (Hooks) CarryOut(model.Event, []model.Decision) {}

// EndBatch implements loop.Hooks.
func (Hooks) EndBatch([]*record.Record) {}

// Ended implements loop.Hooks.
func (Hooks) Ended() <-chan struct{} { return nil }

// Loop is a loop with the parts that it works with.
type Loop struct {
	*loop.Loop
	Journal *journal.Journal
	Records *record.Store
	Clock   *clock.Clock
	t       testing.TB
}

// New returns a loop with an empty state that does not run yet.
func New(t testing.TB) *Loop {
	t.Helper()
	j, err := journal.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	work, end := context.WithCancel(context.Background())
	t.Cleanup(end)
	l := &Loop{Journal: j, Records: record.NewStore(), Clock: clock.NewFrom(time.Now, 1), t: t}
	l.Loop = loop.New(work, j, l.Records, l.Clock, zerolog.Nop(), mapper.DefaultOptions(), Hooks{})
	if err := l.Load(); err != nil {
		t.Fatal(err)
	}
	return l
}

// Run runs the loop until the test ends it.
func (l *Loop) Run() (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.Loop.Run(ctx, nil) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			l.t.Error(err)
		}
	}
}

// Submit adds a task with an estimate, which no GPU can take: the state has none.
func (l *Loop) Submit(rec *record.Record) {
	l.t.Helper()
	now := l.Clock.Now()
	req := model.Request{ID: rec.Task.ID, User: rec.User, GPUs: 1}
	rec.Task = model.Task{Request: req, Phase: model.Estimating, Submitted: now}
	change := &loop.Change{Events: func(units.Instant) ([]model.Event, []*record.Record, error) {
		return []model.Event{model.TaskSubmitted{At: now, Request: req}, model.Estimated{At: now, Task: req.ID, Estimate: model.Estimate{Memory: units.GiB}}}, []*record.Record{rec}, nil
	}}
	if kept, err := l.Apply([]*loop.Change{change}); err != nil || len(kept) > 0 {
		l.t.Fatalf("the submission was not applied: %d kept, %v", len(kept), err)
	}
}
