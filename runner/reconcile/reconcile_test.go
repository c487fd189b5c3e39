package reconcile

import (
	"context"
	"errors"
	"strings"
	"testing"

	"carma/containers"
	"carma/containers/containerstest"
	"carma/mapper/model"
	"carma/runner/engine"
	"carma/runner/journal"
	"carma/runner/label"
	"carma/runner/loop/looptest"

	"github.com/rs/zerolog"
)

// quiet implements Use for a daemon with one trial.
type quiet struct{ released []string }

func (*quiet) InUse(c containers.Container) bool { return c.Name == "trial-now" }
func (q *quiet) Release(_ context.Context, c containers.Container) {
	q.released = append(q.released, c.Name)
}

// setup returns a reconciler on an empty journal and the engine's containers.
func setup(t *testing.T) (*Reconciler, *containerstest.Fake, *quiet, *model.TaskID) {
	t.Helper()
	e := containerstest.NewFake()
	t.Cleanup(e.Shutdown)
	e.AddImage("a", containerstest.Image{})
	q, l := &quiet{}, looptest.New(t)
	highest := new(model.TaskID)
	r, err := New(Config{
		Folder: "/data", Instance: "ab12", Journal: l.Journal, Records: l.Records, Driver: e, Engine: engine.New(e, zerolog.Nop()),
		Loop: l.Loop, Clock: l.Clock, Log: zerolog.Nop(), Known: func(id model.TaskID) { *highest = max(*highest, id) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return r, e, q, highest
}

// container makes a container of an attempt.
func container(t *testing.T, e *containerstest.Fake, name string, task model.TaskID, attempt int) {
	t.Helper()
	labels := label.Identity("ab12", task, attempt, "n")
	labels[label.UID], labels[label.GID], labels[label.User], labels[label.Image] = "1000", "1000", "ann", "a"
	labels[label.Grants], labels[label.Host] = "", "{}"
	if _, err := e.Create(t.Context(), containers.Spec{Name: name, Image: "a", Labels: labels}); err != nil {
		t.Fatal(err)
	}
}

// names returns the names of the engine's containers.
func names(t *testing.T, e *containerstest.Fake) string {
	t.Helper()
	all, err := e.List(t.Context(), map[string]string{label.Instance: "ab12"})
	if err != nil {
		t.Fatal(err)
	}
	list := ""
	for _, c := range all {
		list += c.Name + " "
	}
	return list
}

// TestNewerContainers: a container of a task that the journal does not know is a refusal,
// unless the loss was accepted; then the container becomes a task. Its number is known then.
func TestNewerContainers(t *testing.T) {
	r, e, _, highest := setup(t)
	container(t, e, "newer", 5, 1)
	err := r.AtStart(t.Context())
	refusal, ok := errors.AsType[*journal.Refusal](err)
	if !ok || !strings.Contains(refusal.Error(), "task 5, attempt 1") || r.Reason() == "" || r.Code() != "not-compared" {
		t.Fatalf("%v, %q, %s", err, r.Reason(), r.Code())
	}
	if *highest != 5 {
		t.Errorf("the highest number known is %d", *highest)
	}
	if err := r.journal.SetMeta(journal.AcceptLossKey, []byte("1")); err != nil {
		t.Fatal(err)
	}
	if err := r.AtStart(t.Context()); err != nil {
		t.Fatal(err)
	}
	task, ok := r.loop.State().Task(5)
	if !ok || task.User != "ann" || r.Reason() != "" {
		t.Errorf("taken in as %+v; nothing is launched because %q", task, r.Reason())
	}
	select {
	case <-r.Done():
	default:
		t.Error("the comparison is not done")
	}
	if got := names(t, e); got != "newer " {
		t.Errorf("containers: %s", got)
	}
}

// TestEngineDown: without an answer of the engine the comparison is left for later, and nothing
// is launched until then.
func TestEngineDown(t *testing.T) {
	r, e, _, _ := setup(t)
	e.FailNext(containerstest.OpList, errors.New("down"))
	if err := r.AtStart(t.Context()); err != nil || r.Reason() == "" {
		t.Fatalf("%v, %q", err, r.Reason())
	}
	if _, err := r.journal.Meta(comparedKey); err != nil {
		t.Errorf("the last task that the journal knew is not stored: %v", err)
	}
	ctx, end := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- r.loop.Run(ctx, nil) }()
	compared := false
	if !r.Later(t.Context(), func() { compared = true }) || !compared || r.Reason() != "" {
		t.Errorf("compared: %t, %q", compared, r.Reason())
	}
	end()
	if err := <-ran; err != nil {
		t.Error(err)
	}
	if _, err := r.journal.Meta(comparedKey); !errors.Is(err, journal.ErrNotFound) {
		t.Errorf("after the comparison: %v", err)
	}
}

// TestSweep: containers of removed tasks and of trials that are over are removed. A trial that
// runs and a container newer than the journal are left alone.
func TestSweep(t *testing.T) {
	r, e, q, _ := setup(t)
	if err := r.AtStart(t.Context()); err != nil {
		t.Fatal(err)
	}
	container(t, e, "removed", 3, 1)
	container(t, e, "newer", 9, 1)
	container(t, e, "placed", 4, 2)
	container(t, e, "trial-over", 0, 1)
	container(t, e, "trial-now", 0, 2)
	ctx, end := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- r.loop.Run(ctx, nil) }()
	r.Sweep(t.Context(), map[model.TaskID]int{4: 2}, 6, q)
	end()
	if err := <-ran; err != nil {
		t.Error(err)
	}
	left := names(t, e)
	for name, want := range map[string]bool{"removed": false, "newer": true, "placed": true, "trial-over": false, "trial-now": true} {
		if got := strings.Contains(left, name+" "); got != want {
			t.Errorf("%s is left: %t, want %t", name, got, want)
		}
	}
	if len(q.released) != 2 {
		t.Errorf("released before their removal: %v", q.released)
	}
}
