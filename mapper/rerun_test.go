package mapper

import (
	"testing"

	"carma/internal/units"
	"carma/mapper/model"
)

// exitAgain ends a task's attempt with an exit after which the caller decides about reruns.
func (w *world) exitAgain(id model.TaskID, class model.Class) {
	w.t.Helper()
	t, _ := w.s.Task(id)
	w.step(model.Exited{At: w.now, Task: id, Attempt: t.Last().N, Class: class, Code: 1, Again: "its Job makes the next pod"})
}

// TestAgain checks that, if the caller decides about reruns, a task is held until released
// after any exit, and that a failure of its program uses no retry. After a GPU OOM it then gets
// more memory.
func TestAgain(t *testing.T) {
	w := newWorld(t, plain(), 1)
	id := w.submit(10*units.GiB, nil)
	for _, class := range []model.Class{model.ExitProgram, model.ExitGPUOOM, model.ExitInfrastructure, model.ExitProgram} {
		w.wantOn(id, 0)
		w.exitAgain(id, class)
		w.wait(plain().Backoff)
		held, _ := w.s.Task(id)
		if held.Phase != model.Held || held.Hold == nil || held.Hold.Why != "its Job makes the next pod" {
			t.Fatalf("after %s: %s, %+v", class, held.Phase, held.Hold)
		}
		w.step(model.HoldChanged{At: w.now, Task: id})
	}
	w.wantOn(id, 0)
	if got, _ := w.s.Task(id); got.Last().Grants[0].Memory <= 10*units.GiB {
		t.Errorf("after a GPU OOM it got %s", got.Last().Grants[0].Memory)
	}
	w.exitAgain(id, model.ExitOK)
	w.wantPhase(id, model.Succeeded)
}

// TestCancelFailed checks that a task cancelled as failed fails, whether waiting, held or
// running, and does not run again.
func TestCancelFailed(t *testing.T) {
	w := newWorld(t, plain(), 1)
	runs, waits := w.submit(30*units.GiB, nil), w.submit(30*units.GiB, nil)
	held := w.submit(30*units.GiB, nil)
	w.step(model.HoldChanged{At: w.now, Task: held, Hold: true})
	for _, id := range []model.TaskID{waits, held, runs} {
		w.step(model.Cancel{At: w.now, Task: id, Reason: "its Job has failed", Failed: true})
	}
	w.wantPhase(waits, model.Failed)
	w.wantPhase(held, model.Failed)
	w.wantPhase(runs, model.Stopping)
	w.exitAgain(runs, model.ExitProgram)
	w.wantPhase(runs, model.Failed)
	if got := w.finished[runs]; got.Reason.Text != "its Job has failed" {
		t.Errorf("reason %+v", got.Reason)
	}
}
