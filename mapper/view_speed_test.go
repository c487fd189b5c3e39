package mapper

import (
	"math"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/interference"
	"carma/mapper/model"
	"carma/mapper/predict"
)

// pair returns a world with two tasks that share its GPU.
func pair(t *testing.T) (w *world, a, b model.TaskID) {
	t.Helper()
	opt := DefaultOptions()
	opt.Policy, opt.WarmUp = "carma", 0
	w = newWorld(t, opt, 1)
	begin := func() model.TaskID {
		id := w.submitOnly(nil)
		w.step(model.Estimated{At: w.now, Task: id, Estimate: model.Estimate{Memory: units.GiB}, Expected: model.Expected{RunTime: time.Hour, Loads: []interference.Load{{SMACT: 0.3, SMOCC: 0.1, DRAMA: 0.1}}}})
		w.wantOn(id, 0)
		w.started(id)
		return id
	}
	a = begin()
	w.wait(5 * time.Minute)
	b = begin()
	w.wait(5 * time.Minute)
	return w, a, b
}

// paced reports the rate of a task measured since its neighbours last changed.
func (w *world) paced(id model.TaskID, p model.Throughput) predict.SpeedView {
	w.t.Helper()
	g, ok := w.s.Speed(id)
	if !ok {
		w.t.Fatalf("task %d does not run", id)
	}
	p.Task, p.Attempt, p.Error = id, g.Attempt, 0.02
	p.Since = max(p.Since, g.Since)
	w.step(model.ThroughputReported{At: w.now, Tasks: []model.Throughput{p}})
	g, _ = w.s.Speed(id)
	return g
}

// TestGoing checks that the slowdown by a neighbour is measured if the task's rate alone
// is known too, in the same unit; otherwise it is predicted.
func TestGoing(t *testing.T) {
	w, a, b := pair(t)
	g, ok := w.s.Speed(a)
	if !ok || g.Measured != 0 || !(g.Predicted > 1) || len(g.Beside) != 1 || g.Beside[0] != b || !g.Ends {
		t.Errorf("not told of: %+v, %v", g, ok)
	}
	if g = w.paced(a, model.Throughput{Rate: 10, Unit: "steps"}); g.Measured != 0 {
		t.Errorf("told of beside the other only: %+v", g)
	}
	if g = w.paced(a, model.Throughput{Rate: 10, Unit: "steps", Alone: 13}); math.Abs(g.Measured-1.3) > 1e-9 || !(g.Error > 0) {
		t.Errorf("told of alone: %+v", g)
	}
	if g = w.paced(a, model.Throughput{Rate: 1, Unit: "epochs"}); g.Measured != 0 {
		t.Errorf("of another unit: %+v", g)
	}
	w.exit(b, model.ExitOK)
	w.wait(5 * time.Minute)
	if g = w.paced(a, model.Throughput{Rate: 1.2, Unit: "epochs"}); g.Measured != 1 || g.Predicted != 1 || len(g.Beside) != 0 {
		t.Errorf("alone: %+v", g)
	}
	// From its own rates, first alone and then beside another task.
	w, a, b = pair(t)
	w.exit(b, model.ExitOK)
	w.wait(5 * time.Minute)
	w.paced(a, model.Throughput{Rate: 20})
	c := w.submit(units.GiB, nil)
	w.wantOn(c, 0)
	w.started(c)
	w.wait(5 * time.Minute)
	if g, _ = w.s.Speed(a); g.Measured != 0 {
		t.Errorf("before it is told of beside the new one: %+v", g)
	}
	if g = w.paced(a, model.Throughput{Rate: 16}); math.Abs(g.Measured-1.25) > 1e-9 {
		t.Errorf("beside a new one: %+v", g)
	}
	if _, ok := w.s.Speed(b); ok {
		t.Error("a task that has ended goes on")
	}
}
