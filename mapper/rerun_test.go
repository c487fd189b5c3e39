package mapper

import (
	"testing"

	"carma/internal/units"
)

// exitAgain ends a task's attempt where the caller decides about reruns.
func (w *world) exitAgain(id TaskID, class Class) {
	w.t.Helper()
	t, _ := w.s.Task(id)
	w.step(Exited{At: w.now, Task: id, Attempt: t.Last().N, Class: class, Code: 1, Again: "its Job makes the next pod"})
}

// TestAgain checks that, if the caller decides about reruns, a task is held until
// released, however it ended, and that a failure of its program costs no retry. After a
// GPU OOM it then gets more memory.
func TestAgain(t *testing.T) {
	w := newWorld(t, plain(), 1)
	id := w.submit(10*units.GiB, nil)
	for _, class := range []Class{ExitProgram, ExitGPUOOM, ExitInfrastructure, ExitProgram} {
		w.wantOn(id, 0)
		w.exitAgain(id, class)
		w.wait(plain().Backoff)
		held, _ := w.s.Task(id)
		if held.Phase != Held || held.Hold == nil || held.Hold.Why != "its Job makes the next pod" {
			t.Fatalf("after %s: %s, %+v", class, held.Phase, held.Hold)
		}
		w.step(HoldChanged{At: w.now, Task: id})
	}
	w.wantOn(id, 0)
	if got, _ := w.s.Task(id); got.Last().Grants[0].Memory <= 10*units.GiB {
		t.Errorf("after a GPU OOM it got %s", got.Last().Grants[0].Memory)
	}
	w.exitAgain(id, ExitOK)
	w.wantPhase(id, Succeeded)
}

// TestCancelFailed checks that a task cancelled as failed fails, whether waiting, held or
// running, and does not run again.
func TestCancelFailed(t *testing.T) {
	w := newWorld(t, plain(), 1)
	runs, waits := w.submit(30*units.GiB, nil), w.submit(30*units.GiB, nil)
	held := w.submit(30*units.GiB, nil)
	w.step(HoldChanged{At: w.now, Task: held, Hold: true})
	for _, id := range []TaskID{waits, held, runs} {
		w.step(Cancel{At: w.now, Task: id, Reason: "its Job has failed", Failed: true})
	}
	w.wantPhase(waits, Failed)
	w.wantPhase(held, Failed)
	w.wantPhase(runs, Stopping)
	w.exitAgain(runs, ExitProgram)
	w.wantPhase(runs, Failed)
	if got := w.finished[runs]; got.Reason.Text != "its Job has failed" {
		t.Errorf("reason %+v", got.Reason)
	}
}
