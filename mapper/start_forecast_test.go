package mapper

import (
	"reflect"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/interference"
	"carma/mapper/model"
)

// expects checks the expected start of a task, to a second, and that the question changes
// nothing.
func (w *world) expects(id model.TaskID, from, to time.Duration, known bool) {
	w.t.Helper()
	before := w.s.Clone()
	gotFrom, gotTo, ok := w.s.ExpectedStart(id)
	near := func(a, b time.Duration) bool { return a == b || (a-b).Abs() <= time.Second }
	if ok != known || ok && (!near(gotFrom, from) || !near(gotTo, to)) {
		w.t.Errorf("task %d is expected to start in %v to %v, %v; want %v to %v, %v", id, gotFrom, gotTo, ok, from, to, known)
	}
	if !reflect.DeepEqual(w.s.Clone(), before) {
		w.t.Error("the question has changed the state")
	}
}

// known adds a task on its own GPU with a known run time. The run time is the typical one of
// its model or, with a kind, from earlier runs.
func (w *world) known(run time.Duration) model.TaskID {
	w.t.Helper()
	id := w.submitOnly(nil)
	w.step(model.Estimated{At: w.now, Task: id, Estimate: model.Estimate{Memory: 30 * units.GiB}, Expected: model.Expected{RunTime: run, Loads: []interference.Load{{SMACT: 0.9, DRAMA: 0.5}}}})
	return id
}

// TestExpectedStart checks that tasks are expected to start when GPUs become free, in the order
// of the queue. The later time assumes that tasks take twice their model's typical time.
func TestExpectedStart(t *testing.T) {
	for _, policy := range []string{"magm", "carma"} {
		opt := plain()
		opt.Policy = policy
		w := newWorld(t, opt, 1)
		soon := w.submit(30*units.GiB, func(r *model.Request) { r.Delay = 5 * time.Minute })
		w.expects(soon, 5*time.Minute, 5*time.Minute, true)
		w.cancel(soon)

		running := w.known(20 * time.Minute)
		w.started(running)
		w.wait(10 * time.Minute)
		first, second := w.known(time.Hour), w.known(time.Hour)
		w.expects(first, 10*time.Minute, 20*time.Minute, true)
		w.expects(second, 70*time.Minute, 140*time.Minute, true)
		w.expects(running, 0, 0, false)
		after := w.submit(units.GiB, func(r *model.Request) { r.After = []model.Dependency{{Task: second, Condition: model.AfterOK}} })
		w.expects(after, 130*time.Minute, 260*time.Minute, true)

		w.step(model.EngineChanged{At: w.now, Up: false, Reason: "gone"})
		w.expects(first, 0, 0, false)
	}
}

// TestExpectedStartUnknown checks an unknown blocking task, and then one that will run
// for days.
func TestExpectedStartUnknown(t *testing.T) {
	w := newWorld(t, plain(), 1)
	running := w.submit(30*units.GiB, nil)
	w.started(running)
	waits := w.submit(30*units.GiB, nil)
	w.expects(waits, 0, 0, false)
	w.exit(running, model.ExitOK)
	w.started(waits)

	long := newWorld(t, plain(), 1)
	long.started(long.known(72 * time.Hour))
	long.expects(long.known(time.Hour), 0, 0, false)

	// The expected start is within a day, and the later time is not.
	day := newWorld(t, plain(), 1)
	day.started(day.known(20 * time.Hour))
	day.expects(day.known(time.Hour), 20*time.Hour, -1, true)
}
