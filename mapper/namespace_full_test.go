package mapper

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/breaker"
	"carma/mapper/model"
)

const quotaCause = "its ResourceQuota few is full: 2 of 2 pods are used, and the task wants 1"

func (w *world) refusedIn(id model.TaskID) []model.Launch {
	w.t.Helper()
	return w.noStartBy(id, model.Fault{Scope: model.ScopeNamespace, Code: "quota", Cause: quotaCause})
}

func in(namespace string) func(*model.Request) {
	return func(r *model.Request) { r.Namespace = namespace }
}

// TestNamespaceFull checks that a task refused by its namespace waits without a GPU, with that
// reason. Other tasks of the namespace wait too, one of them is launched as a probe at growing
// intervals, and tasks of other namespaces get the GPU. No task loses an attempt.
func TestNamespaceFull(t *testing.T) {
	w := newWorld(t, plain(), 1)
	a := w.submit(30*units.GiB, in("ann"))
	b := w.submit(5*units.GiB, in("ann"))
	w.refusedIn(a)
	w.refusedIn(b)
	if g := w.s.GPUs()[0]; len(g.Residents) != 0 || g.Reserved != 0 || len(w.s.Breakers()) != 0 {
		t.Fatalf("reserved %s, sick %+v", g.Reserved, w.s.Breakers())
	}
	later := w.submit(1*units.GiB, in("ann"))
	other := w.submit(35*units.GiB, in("bob"))
	w.wantOn(other, 0)
	w.started(other)
	for id, span := range map[model.TaskID]time.Duration{a: 10 * time.Second, b: 15 * time.Second, later: 5 * time.Second} {
		why, _ := w.s.Why(id)
		want := model.Reason{Code: model.ReasonNamespaceFull, Name: "ann", Text: quotaCause, Span: span}
		if why.Binding != want || len(w.launchesOf(id)) > 1 {
			t.Errorf("task %d: %+v, launched %d times", id, why.Binding, len(w.launchesOf(id)))
		}
		if from, to, ok := w.s.ExpectedStart(id); ok {
			t.Errorf("task %d is to start in %s to %s, and nobody knows", id, from, to)
		}
	}
	w.exit(other, model.ExitOK)
	gaps := w.refuseTests(100)
	if n := len(gaps); n < 5 || slices.Max(gaps) > 2*breaker.FullTest || slices.Min(gaps[n/2:]) < breaker.FullTest || !slices.IsSorted(gaps[:5]) {
		t.Errorf("test launches came after %v", gaps)
	}
	for _, id := range []model.TaskID{a, b, later} {
		task, _ := w.s.Task(id)
		if len(w.launchesOf(id)) < 2 || len(task.Attempts) != 1 || task.NotAtFault+task.Failures+task.StartFailuresWhileOthersStart+len(task.Avoid) != 0 || task.Phase != model.Queued {
			t.Errorf("task %d: launched %d times, %+v", id, len(w.launchesOf(id)), task)
		}
	}
}

// refuseTests refuses the launches at n instants, and returns the times between them.
// There is one launch at a time.
func (w *world) refuseTests(n int) (gaps []time.Duration) {
	w.t.Helper()
	last := w.now
	for range n {
		at, ok := w.s.NextTimer()
		if !ok {
			w.t.Fatal("no test launch is due")
		}
		w.now = max(w.now, at)
		if l := w.step(model.TimerFired{At: w.now}); len(l) > 1 {
			w.t.Fatalf("%d test launches at once", len(l))
		} else if len(l) == 1 {
			gaps, last = append(gaps, w.now.Sub(last)), w.now
			w.refusedIn(l[0].Task)
		}
	}
	return gaps
}

// launchesOf returns the launches of a task.
func (w *world) launchesOf(id model.TaskID) (all []model.Launch) {
	for _, l := range w.launches {
		if l.Task == id {
			all = append(all, l)
		}
	}
	return all
}

// filledWorld returns a world with a task that runs in namespace ann, and two tasks that were
// refused there often.
func filledWorld(t *testing.T) (w *world, runs, a, b model.TaskID) {
	w = newWorld(t, plain(), 2)
	runs = w.submit(5*units.GiB, in("ann"))
	w.started(runs)
	a, b = w.submit(5*units.GiB, in("ann")), w.submit(5*units.GiB, in("ann"))
	w.refusedIn(a)
	w.refusedIn(b)
	w.refuseTests(20)
	for len(w.refuseTests(1)) == 0 { // until a probe has just been refused
	}
	return w, runs, a, b
}

// TestNamespaceRoom checks that soon after a task of the namespace has ended the first of
// its waiting tasks is tried. When it runs, the others may be launched, too.
func TestNamespaceRoom(t *testing.T) {
	w, runs, a, b := filledWorld(t)
	w.exit(runs, model.ExitOK)
	if l := w.wait(w.s.NextProbe() - 1); len(l) != 0 {
		t.Errorf("launched at once: %+v", l)
	}
	if l := w.wait(1); len(l) != 1 || l[0].Task != a {
		t.Fatalf("after the end of a task: %+v, want a launch of %d", l, a)
	}
	w.started(a)
	if got, _ := w.s.Task(b); got.Phase != model.Launching || len(w.s.breakers.Save().Full) != 0 {
		t.Errorf("when %d runs, %d is %s", a, b, got.Phase)
	}
}

// TestNamespaceTestTakesLong checks that a probe that is not refused, but does not run
// for long because its image is pulled, lets the others be launched.
func TestNamespaceTestTakesLong(t *testing.T) {
	w, runs, a, b := filledWorld(t)
	c := w.submit(5*units.GiB, in("ann"))
	w.exit(runs, model.ExitOK)
	if l := w.wait(w.s.NextProbe()); len(l) != 1 || l[0].Task != a {
		t.Fatalf("%+v", l)
	}
	if l := w.wait(w.s.NextProbe()); len(l) != 2 || l[0].Task != b || l[1].Task != c {
		t.Errorf("%+v, want %d and %d", l, b, c)
	}
}

// TestNamespaceTestTellsNothing checks that a probe that is stopped, or fails for the engine,
// is followed by another, and that a refusal by a namespace is no result for an engine that is
// probed by the same launch.
func TestNamespaceTestTellsNothing(t *testing.T) {
	w, runs, a, b := filledWorld(t)
	w.exit(runs, model.ExitOK)
	w.wait(w.s.NextProbe())
	w.cancel(a)
	w.exit(a, model.ExitStopped)
	w.wait(w.s.NextProbe())
	if got, _ := w.s.Task(b); got.Phase != model.Launching {
		t.Fatalf("after a stopped test %d is %s", b, got.Phase)
	}
	w.noStart(b)
	if i := w.s.breakers.Namespace("ann"); i == nil || i.Testing != 0 {
		t.Errorf("after the engine's fault: %+v", i)
	}

	w = newWorld(t, plain(), 4)
	for range 3 {
		w.noStart(w.submit(30*units.GiB, in("bob")))
	}
	id := w.submit(30*units.GiB, in("ann"))
	if l := w.wait(w.s.NextProbe()); len(l) != 1 || l[0].Task != id {
		t.Fatalf("%+v", l)
	}
	w.refusedIn(id)
	if l := w.launches[len(w.launches)-1]; w.s.breakers.Save().Sick == nil || l.Task == id || w.s.breakers.Save().Sick.Testing != l.Task {
		t.Errorf("the engine is tested by task %d, the last launch was %+v", w.s.breakers.Save().Sick.Testing, l)
	}
}

// TestNamespaceSnapshot checks that a restarted daemon knows the full namespaces, and
// probes them at once.
func TestNamespaceSnapshot(t *testing.T) {
	w, _, a, _ := filledWorld(t)
	text, err := json.Marshal(w.s)
	if err != nil {
		t.Fatal(err)
	}
	again := New(plain())
	if err := json.Unmarshal(text, again); err != nil {
		t.Fatal(err)
	}
	why, _ := w.s.Why(a)
	if got, _ := again.Why(a); got.Binding != why.Binding || got.Binding.Code != model.ReasonNamespaceFull {
		t.Errorf("%+v, want %+v", got.Binding, why.Binding)
	}
	clone := w.s.Clone()
	w.step(model.EngineChanged{At: w.now})
	if l := w.step(model.EngineChanged{At: w.now, Up: true}); len(l) != 1 || l[0].Task != a {
		t.Errorf("launched %+v, want %d", l, a)
	}
	if kept, err := json.Marshal(clone); err != nil || string(kept) != string(text) {
		t.Errorf("the clone has changed to %s, %v", kept, err)
	}
}
