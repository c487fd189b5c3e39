package control

import (
	"context"
	"errors"
	"slices"
	"strings"
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
	"carma/runner/request"

	"github.com/rs/zerolog"
)

var (
	root = request.Caller{Name: "root"}
	ann  = request.Caller{UID: 1001, Name: "ann"}
	bob  = request.Caller{UID: 1002, Name: "bob"}
)

// cards is a source of two GPUs.
type cards struct{ gpu.Source }

func (cards) Name() string { return "test" }
func (cards) GPUs(context.Context) ([]gpu.Device, error) {
	return []gpu.Device{{UUID: "GPU-a", Capacity: 40 * units.GiB}, {UUID: "GPU-b", Index: 1, Capacity: 40 * units.GiB}}, nil
}

// setup returns a controller whose loop knows two GPUs and task 1 of ann.
func setup(t *testing.T) (*Controller, *looptest.Loop) {
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
	c := New(Config{
		Loop: l.Loop, Find: &record.Finder{Records: l.Records, Journal: l.Journal}, Authz: authz, GPUs: gpus,
		Reread: func() {}, Grace: func(*record.Record) time.Duration { return time.Minute }, NoSuspending: "the driver cannot",
	})
	l.Submit(&record.Record{Name: "train", User: "ann", UID: ann.UID, Task: model.Task{Request: model.Request{ID: 1}}})
	now := l.Clock.Now()
	found := loop.Fact(model.GPUsFound{At: now, GPUs: []model.GPUInfo{{ID: "GPU-a", Capacity: 40 * units.GiB}, {ID: "GPU-b", Index: 1, Capacity: 40 * units.GiB}}})
	down := loop.Fact(model.EngineChanged{At: now, Reason: "it does not answer"}) // so that nothing is launched
	if _, err := l.Apply([]*loop.Change{down, found}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Run())
	return c, l
}

// refused fails the test unless an error is a refusal with a status and a part of its text.
func refused(t *testing.T, what string, err error, status int, part string) {
	t.Helper()
	r, ok := errors.AsType[*request.Error](err)
	if !ok || r.Status != status || !strings.Contains(r.Text, part) {
		t.Errorf("%s: %v; want status %d and %q", what, err, status, part)
	}
}

// TestHold: only a task's owner and administrators hold it. Each change is refused if it does
// not fit the task's phase.
func TestHold(t *testing.T) {
	c, _ := setup(t)
	ctx := t.Context()
	_, err := c.Hold(ctx, bob, "1", api.Note{})
	refused(t, "another user's hold", err, 403, "task 1")
	rec, err := c.Hold(ctx, ann, "train", api.Note{Why: "later"})
	if err != nil || rec.Task.Hold == nil || rec.Task.Hold.By != "ann" || rec.Task.Hold.Why != "later" {
		t.Fatalf("held: %+v, %v", rec, err)
	}
	if rec, err = c.Release(ctx, root, "1"); err != nil || rec.Task.Hold != nil {
		t.Errorf("released: %+v, %v", rec, err)
	}
	_, err = c.Release(ctx, ann, "1")
	refused(t, "a second release", err, 409, "not held by anybody")
	_, err = c.Requeue(ctx, ann, "1", api.RequeueRequest{})
	refused(t, "requeue of a task that waits", err, 409, "does not run")
	_, err = c.Suspend(ctx, ann, "1", api.Note{})
	refused(t, "suspend of a task that waits", err, 409, "has no GPU")
	_, err = c.Hold(ctx, ann, "9", api.Note{})
	refused(t, "hold of no task", err, 404, "no task 9")
}

// TestStop: a stop ends a task, and later changes name how to run it again. A finished task can
// be removed, once.
func TestStop(t *testing.T) {
	c, _ := setup(t)
	ctx := t.Context()
	refused(t, "removal of a task that waits", c.RemoveAll(ctx, "ann", 1), 409, "carma stop 1")
	rec, err := c.Stop(ctx, ann, "1", api.StopRequest{Reason: "enough"})
	if err != nil || rec.Stop == nil || rec.Stop.Grace != time.Minute {
		t.Fatalf("%+v, %v", rec, err)
	}
	_, err = c.Hold(ctx, ann, "1", api.Note{})
	refused(t, "hold of a task that has ended", err, 409, "carma rerun 1")
}

// TestReserve: administrators reserve GPUs; two reservations of a GPU at one time are refused.
func TestReserve(t *testing.T) {
	c, _ := setup(t)
	ctx := t.Context()
	q := api.ReserveRequest{For: "root", GPUs: []string{"1"}, Until: time.Now().Add(time.Hour)}
	_, err := c.Reserve(ctx, ann, q)
	refused(t, "a user's reservation", err, 403, "")
	v, err := c.Reserve(ctx, root, q)
	if err != nil || v.ID != 1 || len(v.GPUs) != 1 || v.GPUs[0].Index != 1 {
		t.Fatalf("%+v, %v", v, err)
	}
	_, err = c.Reserve(ctx, root, q)
	refused(t, "a second one", err, 409, "GPU 1 is reserved at that time")
	q.GPUs = []string{"7"}
	_, err = c.Reserve(ctx, root, q)
	refused(t, "of no GPU", err, 404, "no GPU 7")
	if err := c.Unreserve(ctx, root, 1); err != nil {
		t.Error(err)
	}
	if all, err := c.Reservations(ctx); err != nil || len(all) != 0 {
		t.Errorf("left: %+v, %v", all, err)
	}
	refused(t, "its second end", c.Unreserve(ctx, root, 1), 404, "no reservation 1")
}

// TestPin: a task is pinned to GPUs that exist and can take it.
func TestPin(t *testing.T) {
	c, _ := setup(t)
	ctx := t.Context()
	_, err := c.Pin(ctx, ann, "1", api.PinRequest{GPUs: []string{"GPU-b", "1"}})
	if err != nil {
		t.Error(err)
	}
	_, err = c.Pin(ctx, ann, "1", api.PinRequest{})
	refused(t, "without a GPU", err, 422, "--any")
	_, err = c.Pin(ctx, ann, "1", api.PinRequest{GPUs: []string{"2"}})
	refused(t, "to no GPU", err, 404, "no GPU 2")
}

// TestStopOrder: of a group, tasks that have GPUs are stopped last, dependent ones first.
func TestStopOrder(t *testing.T) {
	task := func(id model.TaskID, p model.Phase) *model.Task {
		return &model.Task{Request: model.Request{ID: id}, Phase: p}
	}
	all := []*model.Task{task(1, model.Running), task(2, model.Queued), task(3, model.Held), task(4, model.Held), task(5, model.Queued)}
	slices.SortFunc(all, lastFirst)
	var order []model.TaskID
	for _, t := range all {
		order = append(order, t.ID)
	}
	if !slices.Equal(order, []model.TaskID{4, 3, 5, 2, 1}) {
		t.Errorf("stopped in the order %v", order)
	}
}
