package loop

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper"
	"carma/mapper/model"
	"carma/runner/clock"
	"carma/runner/journal"
	"carma/runner/record"
	"carma/runner/request"

	"github.com/rs/zerolog"
)

// observed records the calls of the hooks.
type observed struct {
	t        *testing.T
	journal  *journal.Journal
	launched []model.TaskID
	archived []model.TaskID
	batches  int
	ended    chan struct{}
}

func (o *observed) BeginBatch()               {}
func (o *observed) EndBatch([]*record.Record) { o.batches++ }
func (o *observed) Ended() <-chan struct{}    { return o.ended }
func (o *observed) Archive(removed []model.TaskID) []journal.MetaRow {
	o.archived = append(o.archived, removed...)
	return []journal.MetaRow{{Key: "archived", Value: []byte("yes")}}
}

// CarryOut fails the test if a decision that it gets is not in the journal.
func (o *observed) CarryOut(_ model.Event, decisions []model.Decision) {
	for _, d := range decisions {
		l, ok := d.(model.Launch)
		if !ok {
			continue
		}
		o.launched = append(o.launched, l.Task)
		stored := false
		for row, err := range o.journal.Decisions(0) {
			if err != nil {
				o.t.Error(err)
			}
			got, err := model.DecodeDecision(row.Kind, row.Body)
			if err != nil {
				o.t.Error(err)
			}
			other, is := got.(model.Launch)
			stored = stored || is && other.Task == l.Task
		}
		if !stored {
			o.t.Errorf("the launch of task %d is carried out before it is in the journal", l.Task)
		}
	}
}

// open returns a loop on the journal of a folder.
func open(t *testing.T, dir string) (*Loop, *observed) {
	t.Helper()
	j, err := journal.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	o := &observed{t: t, journal: j, ended: make(chan struct{})}
	work, end := context.WithCancel(context.Background())
	t.Cleanup(end)
	now := time.Unix(1_800_000_000, 0)
	options := mapper.DefaultsOf("magm")
	options.WarmUp, options.SMACTCap = 0, 0
	l := New(work, j, record.NewStore(), clock.NewFrom(func() time.Time { return now }, 1), zerolog.Nop(), options, o)
	if err := l.Load(); err != nil {
		t.Fatal(err)
	}
	return l, o
}

// begin has the loop know its options, a GPU and an engine.
func begin(t *testing.T, l *Loop) {
	t.Helper()
	now := l.clock.Now()
	if kept, err := l.Apply([]*Change{
		Fact(model.Configured{At: now, Options: l.options, Format: model.DecisionFormat}),
		Fact(model.GPUsFound{At: now, GPUs: []model.GPUInfo{{ID: "GPU-0", Capacity: 40 * units.GiB}}}),
		Fact(model.EngineChanged{At: now, Up: true}),
	}); err != nil || len(kept) > 0 {
		t.Fatalf("%d changes kept, %v", len(kept), err)
	}
}

// submission is a task's submission with its estimate.
func submission(id model.TaskID) *Change {
	return &Change{Events: func(now units.Instant) ([]model.Event, []*record.Record, error) {
		req := model.Request{ID: id, User: "ann", GPUs: 1}
		rec := &record.Record{Name: "t", User: "ann", Task: model.Task{Request: req, Phase: model.Estimating, Submitted: now}}
		return []model.Event{
			model.TaskSubmitted{At: now, Request: req},
			model.Estimated{At: now, Task: id, Estimate: model.Estimate{Memory: units.GiB}},
		}, []*record.Record{rec}, nil
	}}
}

// run runs the loop until the test ends it.
func run(t *testing.T, l *Loop) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx, nil) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// TestDecisionsAreDurable: a submission is answered when it is applied, and its launch is
// carried out when it is in the journal. A second loop on the journal has the same state.
func TestDecisionsAreDurable(t *testing.T) {
	dir := t.TempDir()
	l, o := open(t, dir)
	begin(t, l)
	end := run(t, l)
	if err := l.Do(t.Context(), submission(1)); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(o.launched, []model.TaskID{1}) || o.batches == 0 {
		t.Errorf("launched %v in %d batches", o.launched, o.batches)
	}
	refusal := errors.New("no")
	err := l.Do(t.Context(), &Change{Events: func(units.Instant) ([]model.Event, []*record.Record, error) { return nil, nil, refusal }})
	if !errors.Is(err, refusal) {
		t.Errorf("a change that refuses is answered with %v", err)
	}
	var before []byte
	if err := l.Look(t.Context(), func(s *mapper.State) { before, _ = s.MarshalJSON() }); err != nil {
		t.Fatal(err)
	}
	end()
	if err := l.store(); err != nil { // no snapshot: the second loop replays the events
		t.Fatal(err)
	}
	_ = l.journal.Close()
	again, _ := open(t, dir)
	after, err := again.State().MarshalJSON()
	if err != nil || string(after) != string(before) {
		t.Errorf("%v; the state was\n%s\nand is after a restart\n%s", err, before, after)
	}
}

// TestRemovedAreArchived: what is kept of removed tasks is stored with the event, once for
// each task.
func TestRemovedAreArchived(t *testing.T) {
	l, o := open(t, t.TempDir())
	now := l.clock.Now()
	if _, err := l.Apply([]*Change{Fact(model.Removed{At: now, Tasks: []model.TaskID{3, 4}}), Fact(model.Removed{At: now, Tasks: []model.TaskID{4}})}); err != nil {
		t.Fatal(err)
	}
	if value, err := l.journal.Meta("archived"); err != nil || string(value) != "yes" || !slices.Equal(o.archived, []model.TaskID{3, 4}) {
		t.Errorf("%v archived, %q, %v", o.archived, value, err)
	}
}

// TestStopping: after the daemon's work has ended, changes and queries are refused. The loop
// ends when the hooks say so.
func TestStopping(t *testing.T) {
	l, o := open(t, t.TempDir())
	close(o.ended)
	if err := l.Run(t.Context(), nil); err != nil {
		t.Error(err)
	}
	work, end := context.WithCancel(t.Context())
	l.work = work
	end()
	l.inbox = nil // nobody receives
	if err := l.Do(t.Context(), submission(1)); !errors.Is(err, request.ErrStopping) {
		t.Errorf("a change is answered with %v", err)
	}
	if err := l.Look(t.Context(), func(*mapper.State) { t.Error("a query ran") }); !errors.Is(err, request.ErrStopping) {
		t.Errorf("a query is answered with %v", err)
	}
	if l.Stopping() {
		t.Error("it cuts requests off before it is asked to")
	}
	if l.BeginStop(); !l.Stopping() {
		t.Error("it does not cut requests off")
	}
}

// TestOffer: an event is offered only while the inbox has room.
func TestOffer(t *testing.T) {
	l, _ := open(t, t.TempDir())
	n := 0
	for l.Offer(model.TimerFired{}) {
		n++
	}
	if n != cap(l.inbox) {
		t.Errorf("%d events were accepted, the inbox has room for %d", n, cap(l.inbox))
	}
	if l.TryLook(func(*mapper.State) {}) {
		t.Error("a query was accepted without a loop that waits")
	}
}

// TestHealth: a loop that is at one round for long is reported, and so is a full disk.
func TestHealth(t *testing.T) {
	l, _ := open(t, t.TempDir())
	if l.Stuck() != "" || l.Full() != "" {
		t.Errorf("a new loop: %q, %q", l.Stuck(), l.Full())
	}
	l.busy.Store(time.Now().UnixNano())
	if got := l.Stuck(); got != "" {
		t.Errorf("a round that has just begun: %q", got)
	}
	l.busy.Store(time.Now().Add(-2 * stuckAfter).UnixNano())
	if got := l.Stuck(); got != "the daemon's loop has been at one round for 40s" {
		t.Errorf("a long round: %q", got)
	}
	l.tight.Store(true)
	if got := l.Full(); !strings.Contains(got, "submissions are refused") {
		t.Errorf("with the spare room in use: %q", got)
	}
	l.unwritable.Store(true)
	if got := l.Full(); !strings.Contains(got, "cannot be written") {
		t.Errorf("with a full disk: %q", got)
	}
}
