package attempt

import (
	"context"
	"errors"
	"testing"
	"time"

	"carma/containers"
	"carma/mapper/model"
	"carma/runner/record"
)

// newTestAttempt returns an attempt of a task in a phase. It has no parts of a daemon.
func newTestAttempt(phase model.Phase) *Attempt {
	c := &core{rec: &record.Record{Task: model.Task{Request: model.Request{ID: 1}, Phase: phase}}, stop: newStopper()}
	c.launch = model.Launch{Task: 1, Attempt: 1, Grants: []model.Grant{{GPU: "GPU-1", Memory: 4}}}
	z := newResizing(c)
	return &Attempt{core: c, suspension: newSuspension(c, z), resizing: z}
}

// TestStopBringsTheKillForward checks that a later stop order can shorten the time until the
// kill, and never lengthens it.
func TestStopBringsTheKillForward(t *testing.T) {
	a := newTestAttempt(model.Running)
	if a.StopRequested() {
		t.Fatal("a new attempt has been asked to stop")
	}
	now := time.Now()
	a.Stop(record.StopOrder{At: now, Grace: time.Hour})
	left, sooner := a.stop.left()
	if !a.StopRequested() || left < 59*time.Minute {
		t.Fatalf("requested: %v, left: %s", a.StopRequested(), left)
	}
	a.Stop(record.StopOrder{At: now, Grace: 2 * time.Hour})
	select {
	case <-sooner:
		t.Fatal("a longer grace counts as a change")
	default:
	}
	a.Stop(record.StopOrder{At: now, Grace: time.Minute})
	select {
	case <-sooner:
	default:
		t.Fatal("a shorter grace does not wake the attempt")
	}
	if left, _ := a.stop.left(); left > time.Minute {
		t.Errorf("%s until the kill, want at most a minute", left)
	}
}

// TestOrder checks that an attempt has at most one order that it has not begun.
func TestOrder(t *testing.T) {
	a := newTestAttempt(model.Running)
	if !a.Order(Suspend(model.Suspend{Task: 1, Attempt: 1})) {
		t.Fatal("the first order was dropped")
	}
	if a.Order(Resume(model.Resume{Task: 1, Attempt: 1})) {
		t.Error("the second order was accepted before the first began")
	}
}

// TestLastOrder checks that the order of an earlier daemon is given again in the phases in
// which it has no answer yet, and in no other.
func TestLastOrder(t *testing.T) {
	for phase, want := range map[model.Phase]bool{model.Suspending: true, model.Resuming: true, model.Suspended: false, model.Running: false} {
		task := model.Task{
			Request: model.Request{ID: 7}, Phase: phase, Suspension: &model.Suspension{Host: 5, From: []model.Grant{{GPU: "GPU-1"}}},
			Attempts: []model.Attempt{{N: 2, Grants: []model.Grant{{GPU: "GPU-2"}}}},
		}
		o, ok := LastOrder(&task)
		if ok != want {
			t.Errorf("phase %s: order %v, want %v", phase, ok, want)
			continue
		}
		if ok && (!o.again || (o.suspend != nil) == (o.resume != nil)) {
			t.Errorf("phase %s: %+v", phase, o)
		}
		if r := o.resume; r != nil && (r.Attempt != 2 || r.From[0] != "GPU-1" || r.Grants[0].GPU != "GPU-2") {
			t.Errorf("phase %s: %+v", phase, *r)
		}
	}
}

// TestResized checks that Resized returns the result of the requests before it.
func TestResized(t *testing.T) {
	a := newTestAttempt(model.Running)
	a.Resize()
	upTo := a.resizing.begin()
	got := make(chan error, 1)
	go func() { got <- a.Resized(t.Context()) }()
	failed := errors.New("the engine refuses")
	a.resizing.end(upTo, failed)
	if err := <-got; !errors.Is(err, failed) {
		t.Errorf("%v, want %v", err, failed)
	}
	a.Resize() // nobody carries it out
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := a.Resized(ctx); err != nil {
		t.Errorf("%v although the caller has gone", err)
	}
}

// TestGrantsAfterResume checks that an attempt has the grants on which it resumed.
func TestGrantsAfterResume(t *testing.T) {
	a := newTestAttempt(model.Suspended)
	before := a.goesTo([]model.Grant{{GPU: "GPU-2", Memory: 4}})
	if len(before) != 1 || before[0].GPU != "GPU-1" || a.uuids()[0] != "GPU-2" {
		t.Errorf("before %v, now %v", before, a.uuids())
	}
}

// TestBeginEnding checks that an attempt is not blamed for a container that is gone.
func TestBeginEnding(t *testing.T) {
	c := &classifier{core: newTestAttempt(model.Running).core}
	for _, err := range []error{errGone, containers.ErrNoPod} {
		if end := c.beginEnding(err); end.class != model.ExitInfrastructure || end.message == "" {
			t.Errorf("%v: %+v", err, end)
		}
	}
}
