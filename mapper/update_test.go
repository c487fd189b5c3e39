package mapper

import (
	"testing"
	"time"

	"carma/internal/units"
)

// TestMoreGPUsHaveLessEach checks that a task that needs more than each of two GPUs has,
// and is changed to two GPUs, gets all their memory.
func TestMoreGPUsHaveLessEach(t *testing.T) {
	w := newWorldOf(t, plain(),
		GPUInfo{ID: "large", Index: 0, Capacity: 80 * units.GiB}, GPUInfo{ID: "small", Index: 1, Capacity: 40 * units.GiB})
	a := w.submit(10*units.GiB, nil)
	w.started(a)
	w.step(GPUsCordoned{At: w.now, GPUs: []GPUID{"large", "small"}, Closure: &Cordon{Why: "to be changed"}})
	w.exitWith(Exited{Task: a, Class: ExitGPUOOM, Demand: 50 * units.GiB})
	w.step(TaskUpdated{At: w.now, Task: a, Change: TaskUpdate{GPUs: new(2)}})
	w.step(GPUsCordoned{At: w.now, GPUs: []GPUID{"large", "small"}})
	w.wait(time.Hour)
	w.wantPhase(a, Launching)
	if got := w.launches[len(w.launches)-1]; len(got.Grants) != 2 || got.Grants[1].Memory != 40*units.GiB || !got.Alone {
		t.Errorf("it was launched as %+v", got)
	}
}

// TestTimeLimitChanges checks that a longer limit counts from the start and replaces the
// older one, and that a limit that is already over ends the task.
func TestTimeLimitChanges(t *testing.T) {
	w := newWorld(t, plain(), 1)
	a := w.submit(units.GiB, func(r *Request) { r.TimeLimit = time.Hour })
	w.started(a)
	w.step(TaskUpdated{At: w.now, Task: a, Change: TaskUpdate{TimeLimit: new(3 * time.Hour)}})
	w.wait(2 * time.Hour)
	w.wantPhase(a, Running)
	w.step(TaskUpdated{At: w.now, Task: a, Change: TaskUpdate{TimeLimit: new(90 * time.Minute)}})
	w.wantPhase(a, Stopping)
	if r := w.stops[0].Reason; r.Code != ReasonTimeLimit || r.Span != 90*time.Minute {
		t.Errorf("it is stopped for %+v", r)
	}
}

// TestHeldGivesItsPlace checks that the limit of a group admits another task while one is
// held, and that a released one keeps its raised need.
func TestHeldGivesItsPlace(t *testing.T) {
	w := newWorld(t, plain(), 1)
	inGroup := func(r *Request) { r.Group, r.Parallel = "g", 1 }
	a, b := w.submit(units.GiB, inGroup), w.submit(units.GiB, inGroup)
	w.started(a)
	w.exitWith(Exited{Task: a, Class: ExitGPUOOM, Demand: 10 * units.GiB})
	w.wantPhase(a, Launching)
	w.wantPhase(b, Held)
	w.started(a)
	w.step(RequeueRequested{At: w.now, Task: a, Hold: true, By: "ann"})
	w.exitWith(Exited{Task: a, Class: ExitStopped})
	w.wantPhase(a, Held)
	w.wantPhase(b, Launching)
	w.step(HoldChanged{At: w.now, Task: a})
	w.wantPhase(a, Held) // the other has its place
	w.started(b)
	w.exitWith(Exited{Task: b, Class: ExitOK})
	w.wantPhase(a, Launching)
	if got := w.launches[len(w.launches)-1].Grants[0].Memory; got < 10*units.GiB {
		t.Errorf("it is launched with %s", got)
	}
}
