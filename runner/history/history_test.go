package history

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"carma/containers/containerstest"
	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/access"
	"carma/runner/api"
	"carma/runner/audit"
	"carma/runner/gpu"
	"carma/runner/inventory"
	"carma/runner/loop"
	"carma/runner/loop/looptest"
	"carma/runner/record"
	"carma/runner/waitreason"

	"github.com/rs/zerolog"
)

// cards is a source of two GPUs.
type cards struct{ gpu.Source }

func (cards) Name() string { return "test" }

func (cards) GPUs(context.Context) ([]gpu.Device, error) {
	return []gpu.Device{{UUID: "GPU-a", Capacity: 40 * units.GiB}, {UUID: "GPU-b", Index: 1, Capacity: 40 * units.GiB}}, nil
}

// newReader returns a reader whose journal has task 4, and the loop of the journal.
func newReader(t *testing.T) (*Reader, *looptest.Loop) {
	t.Helper()
	l := looptest.New(t)
	authz := access.New(access.Config{
		Audit: audit.New(t.TempDir()), Driver: containerstest.NewFake(), Now: time.Now, Log: zerolog.Nop(),
		Settings: func() access.Settings { return access.Settings{} },
	})
	t.Cleanup(func() { _ = authz.Close() })
	gpus, err := inventory.New(t.Context(), cards{}, "", zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	r := New(Config{
		Journal: l.Journal, Find: &record.Finder{Records: l.Records, Journal: l.Journal}, Authz: authz, GPUs: gpus, Clock: l.Clock,
		Waited: waitreason.NewRecorder(l.Records, l.Clock, l.Look, zerolog.Nop()),
		Why:    func(context.Context, string) (api.Why, error) { return api.Why{Summary: "no GPU is large enough"}, nil },
	})
	l.Submit(&record.Record{User: "ada", Task: model.Task{Request: model.Request{ID: 4}}})
	return r, l
}

// move moves task 4 in the queue n times.
func move(t *testing.T, l *looptest.Loop, n int) {
	t.Helper()
	var events []*loop.Change
	for i := range n {
		events = append(events, loop.Fact(model.QueueMoved{At: l.Clock.Now(), Task: 4, By: "ada", Last: i%2 == 0}))
	}
	if left, err := l.Apply(events); err != nil || len(left) > 0 {
		t.Fatalf("%d changes are left, %v", len(left), err)
	}
}

// shortReader returns a new reader that reads 6 events of the beginning and 10 of the end.
func shortReader(r *Reader) *Reader {
	short := New(r.c)
	short.head, short.tail = 6, 10
	return short
}

// of returns the history of a task.
func of(t *testing.T, r *Reader, ref string) api.History {
	t.Helper()
	h, err := r.Of(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestLines checks lines about hardware that the test machine does not have.
func TestLines(t *testing.T) {
	r, _ := newReader(t)
	a, b := model.GPUID("GPU-a"), model.GPUID("GPU-b")
	grants := []model.Grant{{GPU: b, Memory: 3 * units.GiB}}
	high, gone := model.High, model.Reason{Code: model.ReasonOOM, Cause: &model.Reason{Code: model.ReasonWantedMore, Need: 8 * units.GiB, Have: 3 * units.GiB}}
	for want, d := range map[string]model.Decision{
		"comes back on GPU 1 with 3.0 GiB booked, moved from GPU 0":                                             model.Resume{Task: 4, From: []model.GPUID{a}, Grants: grants},
		"comes back on GPU 1 with 3.0 GiB booked":                                                               model.Resume{Task: 4, From: []model.GPUID{b}, Grants: grants},
		"its booking changed: on GPU 1 with 3.0 GiB booked":                                                     model.GrantChanged{Task: 4, Grants: grants},
		"launched on GPUs 0, 1 with 3.0 GiB booked on each":                                                     model.Launch{Task: 4, Grants: append(slices.Clone(grants), model.Grant{GPU: a, Memory: 3 * units.GiB})},
		"launched without a GPU; host memory 2.0 GiB; processors 1.5":                                           model.Launch{Task: 4, Host: model.HostShare{Memory: 2 * units.GiB, CPUs: 1500}},
		"goes back to the queue, to get 8.0 GiB: GPU out of memory: it wanted 8.0 GiB and had 3.0 GiB reserved": model.Requeue{Task: 4, Need: 8 * units.GiB, Reason: gone},
		"may go on: what it waited for has come":                                                                model.Release{Task: 4},
		"":                                                                                                      model.Launch{Task: 5},
	} {
		if got := r.decisionText(4, d); got.Text != want {
			t.Errorf("%q, want %q", got.Text, want)
		}
	}
	for want, ev := range map[string]model.Event{
		"ada changed what was asked for: priority high": model.TaskUpdated{Task: 4, By: "ada", Change: model.TaskUpdate{Priority: &high}},
		"root moves it to GPU 1":                        model.Pinned{Task: 4, By: "root", GPUs: []model.GPUID{b}},
		"could not come back: the driver":               model.Resumed{Task: 4, Failure: "the driver"},
		"ada sent it back to the queue: mine first":     model.RequeueRequested{Task: 4, By: "ada", Why: "mine first"},
		"released by ada":                               model.HoldChanged{Task: 4, By: "ada"},
		"":                                              model.HoldChanged{Task: 44, By: "ada"},
	} {
		if got := r.eventText(4, ev, map[int]bool{}); got.Text != want {
			t.Errorf("%q, want %q", got.Text, want)
		}
	}
}

// TestLongLife checks that a history with many lines contains the first and the last ones,
// that only the beginning and the end of a long journal are read, and that the missing part is
// reported.
func TestLongLife(t *testing.T) {
	r, l := newReader(t)
	const changes = 300
	move(t, l, changes)
	if h := of(t, r, "4"); len(h.Lines) != happenedMost {
		t.Errorf("%d lines of events whose decisions are not stored yet", len(h.Lines))
	}
	if h := of(t, shortReader(r), "4"); h.Unread == nil || len(h.Lines) > 16 {
		t.Errorf("%d lines of them, unread %v", len(h.Lines), h.Unread)
	}
	move(t, l, 1)
	h := of(t, r, "4")
	if len(h.Lines) != happenedMost || h.Gap != happenedFirst || h.LeftOut < changes-happenedMost || h.Unread != nil || h.Waits != "no GPU is large enough" {
		t.Errorf("%d lines, gap after %d, %d left out, unread %v, waits %q", len(h.Lines), h.Gap, h.LeftOut, h.Unread, h.Waits)
	}
	h = of(t, shortReader(r), "4")
	if h.Unread == nil || h.Unread.Until.Before(h.Unread.From) || len(h.Lines) > 17 || len(h.Lines) < 10 || h.Lines[0].Kind != "task-submitted" {
		t.Errorf("%d lines, unread %v: %+v", len(h.Lines), h.Unread, h.Lines)
	}
}

// TestGivesUp checks that a caller who waits for another request for a history can cancel.
func TestGivesUp(t *testing.T) {
	r, _ := newReader(t)
	if err := r.turn.Acquire(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Of(ctx, "4"); !errors.Is(err, context.Canceled) {
		t.Errorf("history: %v", err)
	}
	r.turn.Release(1)
	of(t, r, "4")
}

// TestMerged checks that reasons are put between the lines by time, and that the gap moves with
// the lines before it.
func TestMerged(t *testing.T) {
	long := taskHistory{left: 5}
	for i := range happenedMost {
		long.lines = append(long.lines, historyLine{Happened: api.Happened{At: time.Unix(int64(10*i), 0)}})
	}
	all, gap := long.merged([]waitreason.Line{{Happened: api.Happened{At: time.Unix(15, 0)}}, {Happened: api.Happened{At: time.Unix(1e9, 0)}}})
	if len(all) != happenedMost+2 || gap != happenedFirst+1 || !slices.IsSortedFunc(all, func(a, b historyLine) int { return a.At.Compare(b.At) }) {
		t.Errorf("%d lines, gap after %d", len(all), gap)
	}
}
