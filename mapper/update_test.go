package mapper

import (
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
)

// TestMoreGPUsHaveLessEach checks that a task that needs more than each of two GPUs has,
// and is changed to two GPUs, gets all their memory.
func TestMoreGPUsHaveLessEach(t *testing.T) {
	w := newWorldOf(t, plain(),
		model.GPUInfo{ID: "large", Index: 0, Capacity: 80 * units.GiB}, model.GPUInfo{ID: "small", Index: 1, Capacity: 40 * units.GiB})
	a := w.submit(10*units.GiB, nil)
	w.started(a)
	w.step(model.GPUsCordoned{At: w.now, GPUs: []model.GPUID{"large", "small"}, Closure: &model.Cordon{Why: "to be changed"}})
	w.exitWith(model.Exited{Task: a, Class: model.ExitGPUOOM, Demand: 50 * units.GiB})
	w.step(model.TaskUpdated{At: w.now, Task: a, Change: model.TaskUpdate{GPUs: new(2)}})
	w.step(model.GPUsCordoned{At: w.now, GPUs: []model.GPUID{"large", "small"}})
	w.wait(time.Hour)
	w.wantPhase(a, model.Launching)
	if got := w.launches[len(w.launches)-1]; len(got.Grants) != 2 || got.Grants[1].Memory != 40*units.GiB || !got.Alone {
		t.Errorf("it was launched as %+v", got)
	}
}

// TestTimeLimitChanges checks that a longer limit counts from the start and replaces the older
// one, and that a limit that has already passed ends the task.
func TestTimeLimitChanges(t *testing.T) {
	w := newWorld(t, plain(), 1)
	a := w.submit(units.GiB, func(r *model.Request) { r.TimeLimit = time.Hour })
	w.started(a)
	w.step(model.TaskUpdated{At: w.now, Task: a, Change: model.TaskUpdate{TimeLimit: new(3 * time.Hour)}})
	w.wait(2 * time.Hour)
	w.wantPhase(a, model.Running)
	w.step(model.TaskUpdated{At: w.now, Task: a, Change: model.TaskUpdate{TimeLimit: new(90 * time.Minute)}})
	w.wantPhase(a, model.Stopping)
	if r := w.stops[0].Reason; r.Code != model.ReasonTimeLimit || r.Span != 90*time.Minute {
		t.Errorf("it is stopped for %+v", r)
	}
}

// TestHeldGivesItsPlace checks that the limit of a group admits another task while one is held,
// and that a released task keeps its increased memory need.
func TestHeldGivesItsPlace(t *testing.T) {
	w := newWorld(t, plain(), 1)
	inGroup := func(r *model.Request) { r.Group, r.Parallel = "g", 1 }
	a, b := w.submit(units.GiB, inGroup), w.submit(units.GiB, inGroup)
	w.started(a)
	w.exitWith(model.Exited{Task: a, Class: model.ExitGPUOOM, Demand: 10 * units.GiB})
	w.wantPhase(a, model.Launching)
	w.wantPhase(b, model.Held)
	w.started(a)
	w.step(model.RequeueRequested{At: w.now, Task: a, Hold: true, By: "ann"})
	w.exitWith(model.Exited{Task: a, Class: model.ExitStopped})
	w.wantPhase(a, model.Held)
	w.wantPhase(b, model.Launching)
	w.step(model.HoldChanged{At: w.now, Task: a})
	w.wantPhase(a, model.Held) // the other task has its place in the group
	w.started(b)
	w.exitWith(model.Exited{Task: b, Class: model.ExitOK})
	w.wantPhase(a, model.Launching)
	if got := w.launches[len(w.launches)-1].Grants[0].Memory; got < 10*units.GiB {
		t.Errorf("it is launched with %s", got)
	}
}
