package mapper

import (
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/mapper/preempt"
)

// idleWorld has two GPUs, and options about idle tasks.
func idleWorld(t *testing.T, change func(*model.Options)) *world {
	opt := plain()
	opt.IdleReport, opt.IdleStop = 30*time.Minute, 4*time.Hour
	if change != nil {
		change(&opt)
	}
	return newWorld(t, opt, 2)
}

// seesGPU sends a sample of GPU 0: its activity and its tasks' use.
func (w *world) seesGPU(smact float64, coarse bool, uses ...model.TaskUse) {
	w.t.Helper()
	s := model.GPUSample{ID: "GPU-0", SMACT: smact, Coarse: coarse, Tasks: uses}
	for _, u := range uses {
		s.Used += u.Used
	}
	w.step(model.Sampled{At: w.now, GPUs: []model.GPUSample{s}})
}

func (w *world) runs(edit func(*model.Request)) model.TaskID {
	w.t.Helper()
	id := w.submit(4*units.GiB, edit)
	w.step(model.Started{At: w.now, Task: id, Attempt: 1})
	return id
}

func (w *world) idle(id model.TaskID) model.Idleness {
	w.t.Helper()
	t, ok := w.s.Task(id)
	if !ok {
		w.t.Fatalf("task %d has ended", id)
	}
	return t.Idle
}

// TestIdleHog checks that an idle task that holds memory is reported, not stopped, and that the
// report is withdrawn when it works again.
func TestIdleHog(t *testing.T) {
	w := idleWorld(t, nil)
	id := w.runs(nil)
	w.wait(time.Minute)
	began := w.now
	w.seesGPU(0.01, false, model.TaskUse{Task: id, Used: units.GiB})
	w.wait(29 * time.Minute)
	if got := w.idle(id); got.Told || got.Since != began {
		t.Fatalf("after 29 minutes: %+v", got)
	}
	w.wait(2 * time.Minute)
	if got := w.idle(id); !got.Told || got.Ends != 0 {
		t.Fatalf("after 31 minutes: %+v", got)
	}
	w.wait(48 * time.Hour)
	if len(w.stops) > 0 {
		t.Fatalf("it was stopped: %+v", w.stops)
	}
	w.seesGPU(0.4, false, model.TaskUse{Task: id, Used: units.GiB})
	if got := w.idle(id); got != (model.Idleness{}) {
		t.Errorf("it works again: %+v", got)
	}
}

// TestNoEvidence lists samples that do not show that a task is idle.
func TestNoEvidence(t *testing.T) {
	for name, show := range map[string]func(w *world, id model.TaskID){
		"coarse activity": func(w *world, id model.TaskID) { w.seesGPU(0, true, model.TaskUse{Task: id, Used: units.GiB}) },
		"no memory any more": func(w *world, id model.TaskID) {
			w.seesGPU(0, false, model.TaskUse{Task: id, Used: units.GiB})
			w.seesGPU(0, false)
		},
		"never seen, beside memory that nobody knows": func(w *world, _ model.TaskID) {
			w.step(model.Sampled{At: w.now, GPUs: []model.GPUSample{{ID: "GPU-0", SMACT: 0.5, Used: units.GiB, OtherProcesses: units.GiB}}})
		},
		"no sample":        func(*world, model.TaskID) {},
		"a busy neighbour": func(w *world, id model.TaskID) { w.seesGPU(0.5, false, model.TaskUse{Task: id, Used: units.GiB}) },
		"kernels of its own": func(w *world, id model.TaskID) {
			w.seesGPU(0.5, false, model.TaskUse{Task: id, Used: units.GiB, Timed: true, Active: 0.01})
		},
		"a fault": func(w *world, id model.TaskID) {
			w.step(model.Sampled{At: w.now, GPUs: []model.GPUSample{{ID: "GPU-0", Fault: "lost", Tasks: []model.TaskUse{{Task: id, Used: units.GiB}}}}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := idleWorld(t, func(o *model.Options) { o.IdleYield = time.Hour })
			id := w.runs(nil)
			show(w, id)
			w.wait(10 * time.Hour)
			if got := w.idle(id); got.Since != 0 || len(w.stops) > 0 {
				t.Errorf("it is idle: %+v, %+v", got, w.stops)
			}
		})
	}
}

// TestIdleBesideWork checks that a task is idle beside an active one if its own kernels do not
// run. A task on two GPUs must be idle on both.
func TestIdleBesideWork(t *testing.T) {
	w := idleWorld(t, nil)
	id := w.runs(nil)
	w.seesGPU(0.9, false, model.TaskUse{Task: id, Used: units.GiB, Timed: true})
	if w.idle(id).Since == 0 {
		t.Error("its kernels do not run, and it is not idle")
	}
	w = idleWorld(t, nil)
	id = w.runs(func(r *model.Request) { r.GPUs = 2 })
	w.seesGPU(0, false, model.TaskUse{Task: id, Used: units.GiB})
	if w.idle(id).Since != 0 {
		t.Error("only one of its GPUs was seen")
	}
	w.step(model.Sampled{At: w.now, GPUs: []model.GPUSample{{ID: "GPU-1"}}})
	if w.idle(id).Since == 0 {
		t.Error("both its GPUs do nothing")
	}
}

// TestIdleStop checks that a task with a terminal is warned and then stopped, and that input
// postpones this. The time that the task sets overrides the option.
func TestIdleStop(t *testing.T) {
	w := idleWorld(t, nil)
	id := w.runs(func(r *model.Request) { r.Terminal = true })
	w.seesGPU(0, false) // it holds no memory, but its grant is allocated
	began := w.now
	w.wait(3*time.Hour + 51*time.Minute)
	if got := w.idle(id); got.Ends != began.Add(4*time.Hour) {
		t.Fatalf("not warned: %+v", got)
	}
	w.step(model.TerminalInput{At: w.now, Task: id})
	if got := w.idle(id); got.Ends != 0 || got.Told || got.Since != w.now {
		t.Fatalf("somebody has typed: %+v", got)
	}
	w.wait(4*time.Hour - time.Second)
	if len(w.stops) > 0 {
		t.Fatalf("stopped too early: %+v", w.stops)
	}
	w.wait(time.Second)
	if len(w.stops) != 1 || say(w.stops[0].Reason) != "idle span=4h0m0s" {
		t.Fatalf("stops: %+v", w.stops)
	}
	w.step(model.Exited{At: w.now, Task: id, Attempt: 1, Class: model.ExitStopped, Code: 143})
	w.wantFailed(id, "idle span=4h0m0s")

	for own, after := range map[time.Duration]time.Duration{-1: 0, 20 * time.Minute: 20 * time.Minute} {
		w := idleWorld(t, nil)
		w.runs(func(r *model.Request) { r.Terminal, r.IdleStop = true, own })
		w.seesGPU(0, false)
		began := w.now
		w.wait(100 * time.Hour)
		if after == 0 != (len(w.stops) == 0) {
			t.Errorf("idle stop %s: stops %+v", own, w.stops)
		}
		if after > 0 && w.stops[0].Reason.Span != after {
			t.Errorf("idle stop %s from %d: %+v", own, began, w.stops)
		}
	}
}

// TestIdleYield checks that option IdleYield also stops tasks without a terminal. If it
// is set while a task has long been idle, the task is warned first. A restart resets the
// idle time.
func TestIdleYield(t *testing.T) {
	w := idleWorld(t, nil)
	id := w.runs(nil)
	w.seesGPU(0, false, model.TaskUse{Task: id, Used: units.GiB})
	w.wait(5 * time.Hour)
	opt := w.s.Options()
	opt.IdleYield = 2 * time.Hour
	w.step(model.Configured{At: w.now, Options: opt, Format: model.DecisionFormat})
	if got := w.idle(id); got.Ends != w.now.Add(preempt.IdleWarning) || len(w.stops) > 0 {
		t.Fatalf("%+v, stops %+v", got, w.stops)
	}
	w.step(model.GPUsFound{At: w.now, GPUs: []model.GPUInfo{{ID: "GPU-0", Capacity: 40 * units.GiB}, {ID: "GPU-1", Index: 1, Capacity: 40 * units.GiB}}})
	w.wait(time.Hour)
	if got := w.idle(id); got.Since != 0 || len(w.stops) > 0 {
		t.Fatalf("nobody has looked: %+v, stops %+v", got, w.stops)
	}
	w.seesGPU(0, false, model.TaskUse{Task: id, Used: units.GiB})
	w.wait(2 * time.Hour)
	if len(w.stops) != 1 || w.stops[0].Reason.Code != model.ReasonIdle {
		t.Errorf("stops: %+v", w.stops)
	}
}

// TestIdleSinceBack checks that the idle time of a task starts again when it resumes. The time
// in which its memory is copied to the GPU is not idle time.
func TestIdleSinceBack(t *testing.T) {
	w := idleWorld(t, nil)
	w.step(model.GPUsFound{At: w.now, GPUs: []model.GPUInfo{{ID: "GPU-0", Capacity: 40 * units.GiB, Suspend: model.SuspendHere}}})
	id := w.runs(nil)
	w.step(model.SuspendAsked{At: w.now, Task: id, By: "ada"})
	w.step(model.SuspendDone{At: w.now, Task: id, Attempt: 1})
	w.step(model.ResumeAsked{At: w.now, Task: id})
	w.seesGPU(0, false, model.TaskUse{Task: id, Used: units.GiB})
	w.wait(40 * time.Minute)
	w.step(model.Resumed{At: w.now, Task: id, Attempt: 1})
	if got := w.idle(id); got.Told || got.Since != w.now {
		t.Fatalf("back for no time: %+v, now %d", got, w.now)
	}
}

// TestTouchedWhileSuspending checks that input during a failed suspension counts when the
// task continues.
func TestTouchedWhileSuspending(t *testing.T) {
	w := idleWorld(t, nil)
	w.step(model.GPUsFound{At: w.now, GPUs: []model.GPUInfo{{ID: "GPU-0", Capacity: 40 * units.GiB, Suspend: model.SuspendHere}}})
	id := w.runs(nil)
	w.seesGPU(0, false, model.TaskUse{Task: id, Used: units.GiB})
	w.wait(time.Minute)
	w.step(model.SuspendAsked{At: w.now, Task: id, By: "ada"})
	w.wait(time.Minute)
	w.step(model.TerminalInput{At: w.now, Task: id})
	typed := w.now
	w.wait(time.Minute)
	w.step(model.SuspendDone{At: w.now, Task: id, Attempt: 1, Failure: "no"})
	w.seesGPU(0, false, model.TaskUse{Task: id, Used: units.GiB})
	if got := w.idle(id); got.Since != typed {
		t.Errorf("somebody typed at %d: %+v", typed, got)
	}
}

// TestSquatter checks that a task that never uses its GPUs is reported like a task that
// holds memory, and is not unused any more once it uses them.
func TestSquatter(t *testing.T) {
	for name, show := range map[string]func(w *world){
		"alone":            func(w *world) { w.seesGPU(0, false) },
		"coarse activity":  func(w *world) { w.seesGPU(0, true) },
		"a busy neighbour": func(w *world) { w.seesGPU(0.9, false, model.TaskUse{Task: 2, Used: units.GiB}) },
	} {
		t.Run(name, func(t *testing.T) {
			w := idleWorld(t, func(o *model.Options) { o.IdleYield = 2 * time.Hour })
			id := w.runs(nil)
			w.runs(nil)
			show(w)
			began := w.now
			w.wait(31 * time.Minute)
			if got := w.idle(id); !got.Told || !got.Unused || got.Since != began {
				t.Fatalf("after 31 minutes: %+v", got)
			}
			w.wait(2 * time.Hour)
			if len(w.stops) == 0 || w.stops[0].Task != id || w.stops[0].Reason.Code != model.ReasonIdle {
				t.Errorf("stops: %+v", w.stops)
			}
		})
	}
	w := idleWorld(t, nil)
	id := w.runs(func(r *model.Request) { r.GPUs = 2 })
	w.seesGPU(0, false)
	w.step(model.Sampled{At: w.now, GPUs: []model.GPUSample{{ID: "GPU-1"}}})
	if got := w.idle(id); !got.Unused {
		t.Errorf("before: %+v", got)
	}
	w.seesGPU(0.6, false, model.TaskUse{Task: id, Used: units.GiB})
	if got := w.idle(id); got != (model.Idleness{}) {
		t.Errorf("it works: %+v", got)
	}
	w.seesGPU(0, false, model.TaskUse{Task: id, Used: units.GiB})
	if got := w.idle(id); got.Since == 0 || got.Unused {
		t.Errorf("it has worked: %+v", got)
	}
}
