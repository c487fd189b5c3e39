package mapper

import (
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
)

// hosted returns a world with one machine of two GPUs of 40 GiB, 64 GiB of host memory for
// tasks and 8 processors.
func hosted(t *testing.T) *world {
	w := newWorld(t, plain(), 2)
	w.step(model.HostsFound{At: w.now, Hosts: []model.HostInfo{{Total: 72 * units.GiB, Memory: 64 * units.GiB, CPUs: 8000}}})
	return w
}

func (w *world) share(id model.TaskID) model.HostShare {
	w.t.Helper()
	task, ok := w.s.Task(id)
	if !ok || task.Current() == nil {
		w.t.Fatalf("task %d has no share", id)
	}
	return task.Current().Host
}

func (w *world) wantBinding(id model.TaskID, want model.Reason) {
	w.t.Helper()
	if why, _ := w.s.Why(id); why.Binding != want {
		w.t.Fatalf("task %d waits for %+v, not %+v", id, why.Binding, want)
	}
}

func noGPU(r *model.Request) { r.NoGPU, r.GPUs = true, 0 }

func hostMem(m units.Bytes) func(*model.Request) { return func(r *model.Request) { r.HostMem = m } }

// TestHostShare checks allocations and limits of host memory.
func TestHostShare(t *testing.T) {
	w := hosted(t)
	all := func(f ...func(*model.Request)) func(*model.Request) {
		return func(r *model.Request) {
			for _, f := range f {
				f(r)
			}
		}
	}
	for _, c := range []struct {
		name string
		id   model.TaskID
		want model.HostShare
	}{
		{"half a GPU of two: that part of three quarters", w.submit(20*units.GiB, nil), model.HostShare{Memory: 12 * units.GiB, Limit: 64 * units.GiB, Weight: 2000}},
		{"asked for", w.submit(units.GiB, all(hostMem(3*units.GiB), func(r *model.Request) { r.CPUs = 1500 })), model.HostShare{Memory: 3 * units.GiB, Limit: 3 * units.GiB, CPUs: 1500, Weight: 1500}},
		{"less booked than it may use", w.submit(units.GiB, all(hostMem(6*units.GiB), func(r *model.Request) { r.HostReserve = units.GiB })), model.HostShare{Memory: units.GiB, Limit: 6 * units.GiB, Weight: 100}},
		{"no GPU", w.submit(0, noGPU), model.HostShare{Memory: 4 * units.GiB, Limit: 48 * units.GiB, CPUs: 1000, Weight: 1000}},
	} {
		if got := w.share(c.id); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
	if h := w.s.Hosts()[0]; h.Booked != 20*units.GiB || h.CPUsBooked != 2500 {
		t.Errorf("booked: %s and %d", h.Booked, h.CPUsBooked)
	}
	w.exit(1, model.ExitOK)
	w.exit(2, model.ExitOK)
	w.exit(3, model.ExitOK)
	w.exit(4, model.ExitOK)
	if h := w.s.Hosts()[0]; h.Booked != 0 || len(h.Residents) > 0 {
		t.Errorf("left: %+v", h)
	}
}

// TestHostWaits checks that a task waits for host memory or processors with that reason, and
// starts once they are free.
func TestHostWaits(t *testing.T) {
	w := hosted(t)
	a := w.submit(units.GiB, hostMem(60*units.GiB))
	b := w.submit(units.GiB, hostMem(5*units.GiB))
	w.wantOn(b)
	w.wantBinding(b, model.Reason{Code: model.ReasonHostMemory, Need: 5 * units.GiB, Have: 4 * units.GiB, Of: 64 * units.GiB})
	c := w.submit(0, func(r *model.Request) { noGPU(r); r.HostMem, r.CPUs = units.GiB, 8000 })
	w.wantPhase(c, model.Launching)
	d := w.submit(0, func(r *model.Request) { noGPU(r); r.HostMem, r.CPUs = units.GiB, 500 })
	w.wantBinding(d, model.Reason{Code: model.ReasonHostCPUs, More: 500, Count: 8000, Limit: 8000})
	w.exit(c, model.ExitOK)
	w.wantPhase(d, model.Launching)
	w.wantOn(b)
	w.exit(a, model.ExitOK)
	w.wantPhase(b, model.Launching)
}

// TestHostUse checks that a task that exceeds its allocation counts with its use, and
// that memory used outside of tasks cannot be allocated.
func TestHostUse(t *testing.T) {
	w := hosted(t)
	a := w.submit(20*units.GiB, nil) // 12 GiB allocated
	w.step(model.Sampled{At: w.now, Hosts: []model.HostSample{{Available: 30 * units.GiB, Tasks: []model.HostUse{{Task: a, Used: 40 * units.GiB}}}}})
	b := w.submit(units.GiB, hostMem(25*units.GiB))
	w.wantBinding(b, model.Reason{Code: model.ReasonHostMemory, Need: 25 * units.GiB, Have: 24 * units.GiB, Of: 64 * units.GiB})
	w.step(model.Sampled{At: w.now, Hosts: []model.HostSample{{Available: 3 * units.GiB, Tasks: []model.HostUse{{Task: a, Used: 2 * units.GiB}}}}})
	w.wantBinding(b, model.Reason{Code: model.ReasonHostLow, Have: 3 * units.GiB, Of: 72 * units.GiB})
	w.step(model.Sampled{At: w.now, Hosts: []model.HostSample{{Available: 60 * units.GiB, Tasks: []model.HostUse{{Task: a, Used: 2 * units.GiB}}}}})
	w.wantPhase(b, model.Launching)
}

// TestHostRunsLow checks that, if the machine runs low, the task that exceeds its
// allocation most is stopped and runs again with more, while its neighbour stays.
func TestHostRunsLow(t *testing.T) {
	opt := plain()
	opt.Watchdog = model.WatchdogRelaunch
	w := newWorld(t, opt, 2)
	w.step(model.HostsFound{At: w.now, Hosts: []model.HostInfo{{Total: 72 * units.GiB, Memory: 64 * units.GiB, CPUs: 8000}}})
	a, b := w.submit(4*units.GiB, nil), w.submit(4*units.GiB, hostMem(8*units.GiB))
	w.started(a)
	w.started(b)
	use := []model.HostUse{{Task: a, Used: 61 * units.GiB}, {Task: b, Used: 8 * units.GiB}}
	w.step(model.Sampled{At: w.now, Hosts: []model.HostSample{{Available: 2 * units.GiB, Tasks: use}}})
	w.wantPhase(a, model.Running)
	w.step(model.Sampled{At: w.now, Hosts: []model.HostSample{{Available: units.GiB, Tasks: use}}})
	w.wantPhase(a, model.Stopping)
	w.wantPhase(b, model.Running)
	w.exit(a, model.ExitStopped)
	if task, ok := w.s.Task(a); !ok || task.NextHostGrant != 64*units.GiB || task.Reason.Code != model.ReasonHostAgain {
		t.Errorf("the hog is %+v", task)
	}
}

// TestHostOOMAgain checks that after a host OOM a task without a requested amount runs again
// with more, until it has had all memory of the machine. A task with a requested amount fails.
func TestHostOOMAgain(t *testing.T) {
	w := hosted(t)
	asked := w.submit(units.GiB, hostMem(2*units.GiB))
	w.exit(asked, model.ExitHostOOM)
	if _, open := w.s.Task(asked); open {
		t.Error("a task that asked for 2 GiB runs again after it used them")
	}
	a := w.submit(20*units.GiB, nil)
	for _, need := range []units.Bytes{18 * units.GiB, 27 * units.GiB} {
		w.exit(a, model.ExitHostOOM)
		if got := w.share(a).Memory; got != need {
			t.Fatalf("booked %s, want %s", got, need)
		}
	}
}

// TestHostLearned checks that the next run of a kind is allocated the memory of the last.
func TestHostLearned(t *testing.T) {
	opt := plain()
	opt.Learn = true
	w := newWorld(t, opt, 2)
	w.step(model.HostsFound{At: w.now, Hosts: []model.HostInfo{{Total: 72 * units.GiB, Memory: 64 * units.GiB, CPUs: 8000}}})
	kind := func(r *model.Request) { r.Kind = "k" }
	a := w.submit(20*units.GiB, kind)
	w.started(a)
	w.step(model.Sampled{At: w.now, Hosts: []model.HostSample{{Tasks: []model.HostUse{{Task: a, Used: 20 * units.GiB}}}}})
	w.exit(a, model.ExitOK)
	if got := w.share(w.submit(20*units.GiB, kind)).Memory; got != 23*units.GiB+256*units.MiB {
		t.Errorf("booked %s", got)
	}
}

// TestNoGPU checks that tasks without a GPU and a task on all GPUs do not wait for each other,
// and that a task without a GPU also runs if there is no GPU.
func TestNoGPU(t *testing.T) {
	w := newWorld(t, plain(), 1)
	a := w.submit(0, func(r *model.Request) { r.Exclusive = true })
	w.wantOn(a, 0)
	b := w.submit(0, noGPU)
	w.wantPhase(b, model.Launching)
	waits := w.submit(units.GiB, func(r *model.Request) { r.Priority = model.High })
	w.wantOn(waits)
	c := w.submit(0, noGPU)
	w.wantPhase(c, model.Launching)
	w.step(model.GPUsFound{At: w.now})
	w.wantPhase(w.submit(0, noGPU), model.Launching)
	w.exit(b, model.ExitGPUOOM) // it has no GPU, so its program is at fault
	if _, open := w.s.Task(b); open {
		t.Error("a task without a GPU recovers from a GPU OOM")
	}
	if got := w.s.Account("").Tasks; got != 3 {
		t.Errorf("%d tasks are counted", got)
	}
}

// TestNoGPUSlot checks that a task without a GPU is stopped after its slot if another one
// waits.
func TestNoGPUSlot(t *testing.T) {
	w := hosted(t)
	a := w.submit(0, func(r *model.Request) { noGPU(r); r.HostMem, r.Slot = 60*units.GiB, time.Minute })
	w.started(a)
	b := w.submit(0, func(r *model.Request) { noGPU(r); r.HostMem = 30 * units.GiB })
	w.wait(59 * time.Second)
	w.wantPhase(a, model.Running)
	w.wait(2 * time.Second)
	w.wantPhase(a, model.Stopping)
	w.exit(a, model.ExitStopped)
	w.wantPhase(b, model.Launching)
	w.wantPhase(a, model.Queued)
}

// TestHostKept checks that the machine's memory is reserved for a task that has waited for its
// aging time, so that smaller ones cannot overtake it indefinitely.
func TestHostKept(t *testing.T) {
	w := hosted(t)
	a := w.submit(units.GiB, hostMem(30*units.GiB))
	big := w.submit(units.GiB, hostMem(60*units.GiB))
	w.wantPhase(w.submit(units.GiB, hostMem(units.GiB)), model.Launching)
	w.wait(time.Hour)
	small := w.submit(units.GiB, hostMem(units.GiB))
	w.wantBinding(small, model.Reason{Code: model.ReasonHostKept, Task: big})
	w.exit(a, model.ExitOK)
	w.exit(3, model.ExitOK)
	w.wantPhase(big, model.Launching)
	w.wantPhase(small, model.Launching)
}
