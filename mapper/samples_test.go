package mapper

import (
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
)

func TestForeign(t *testing.T) {
	w := newWorld(t, plain(), 1)
	a := w.submit(20*units.GiB, nil)
	w.sample(model.GPUSample{ID: "GPU-0", OtherProcesses: 15 * units.GiB})
	b := w.submit(10*units.GiB, nil)
	w.wantOn(b)
	w.sample(model.GPUSample{ID: "GPU-0", OtherProcesses: 10 * units.GiB})
	w.wantOn(b, 0)
	// If other processes use more than the free memory, no task starts, and no task is lost.
	w.sample(model.GPUSample{ID: "GPU-0", OtherProcesses: 30 * units.GiB})
	c := w.submit(units.GiB, nil)
	w.exit(a, model.ExitOK)
	w.wantOn(c)
	w.wantPhase(b, model.Launching)
	w.exit(b, model.ExitOK)
	w.wantOn(c, 0)
}

func TestGPUsComeAndGo(t *testing.T) {
	two := []model.GPUInfo{{ID: "GPU-0", Capacity: 40 * units.GiB}, {ID: "GPU-1", Index: 1, Capacity: 40 * units.GiB}}
	w := newWorldOf(t, plain(), two...)
	a, b := w.submit(30*units.GiB, nil), w.submit(30*units.GiB, nil)
	w.step(model.GPUsFound{At: w.now, GPUs: two[:1]})
	c := w.submit(20*units.GiB, nil)
	w.exit(b, model.ExitOK)
	if len(w.s.GPUs()) != 1 {
		t.Error("a GPU that is gone and empty is still there")
	}
	w.wantOn(c)
	w.step(model.GPUsFound{At: w.now, GPUs: two})
	w.wantOn(c, 1)

	// A GPU that returns before its task has ended keeps the task.
	w.step(model.GPUsFound{At: w.now, GPUs: two[:1]})
	w.step(model.GPUsFound{At: w.now, GPUs: two})
	w.wantOn(c, 1)
	w.wantOn(w.submit(15*units.GiB, nil), 1)

	// A faulty GPU keeps its tasks, and gets new ones when the fault has ended.
	w.sample(model.GPUSample{ID: "GPU-0", Fault: "ECC"})
	d := w.submit(10*units.GiB, nil)
	w.wantOn(a, 0)
	w.wantOn(d)
	w.sample(model.GPUSample{ID: "GPU-0"})
	w.wantOn(d, 0)
}

// TestHomeIsMissing checks a program that vacates a GPU that is lost meanwhile. When the GPU is
// found again, the residue counts until a sample shows another value. The GPU is removed when
// the program has ended.
func TestHomeIsMissing(t *testing.T) {
	two := []model.GPUInfo{{ID: "GPU-0", Capacity: 40 * units.GiB}, {ID: "GPU-1", Index: 1, Capacity: 40 * units.GiB}}
	w := newWorldOf(t, plain(), two...)
	w.step(model.HostsFound{At: w.now, Hosts: []model.HostInfo{{Total: 500 * units.GiB, Memory: 500 * units.GiB}}})
	a := w.submit(30*units.GiB, func(r *model.Request) { r.HostReserve = units.GiB })
	w.started(a)
	w.step(model.VacatesOnRequest{At: w.now, Task: a, Attempt: 1})
	w.step(model.SuspendAsked{At: w.now, Task: a, By: "ada"})
	w.step(model.GPUsFound{At: w.now, GPUs: two[1:]})
	w.step(model.SuspendDone{At: w.now, Task: a, Attempt: 1})
	w.wantPhase(a, model.Suspended)
	w.step(model.GPUsFound{At: w.now, GPUs: two})
	if g := w.gpu(0); g.OtherProcesses != model.AssumedResidue {
		t.Errorf("%s of others on the GPU, want %s", g.OtherProcesses, model.AssumedResidue)
	}
	w.step(model.GPUsFound{At: w.now, GPUs: two[1:]})
	w.exit(a, model.ExitInfrastructure)
	if n := len(w.s.GPUs()); n != 1 {
		t.Errorf("%d GPUs are known; one is gone and holds nothing", n)
	}
}

// TestBehindIsMissing checks that the last sampled residue of a suspended task counts again
// when its GPU is found, even if the task may resume on another GPU.
func TestBehindIsMissing(t *testing.T) {
	two := []model.GPUInfo{{ID: "GPU-0", Capacity: 40 * units.GiB, Suspend: model.SuspendMove}, {ID: "GPU-1", Index: 1, Capacity: 40 * units.GiB, Suspend: model.SuspendMove}}
	w := newWorldOf(t, plain(), two...)
	w.step(model.HostsFound{At: w.now, Hosts: []model.HostInfo{{Total: 500 * units.GiB, Memory: 500 * units.GiB}}})
	a := w.submit(30*units.GiB, func(r *model.Request) { r.HostReserve = units.GiB })
	w.started(a)
	w.step(model.SuspendAsked{At: w.now, Task: a, By: "ada"})
	w.step(model.SuspendDone{At: w.now, Task: a, Attempt: 1})
	w.wantPhase(a, model.Suspended)
	w.step(model.Sampled{At: w.now, GPUs: []model.GPUSample{{ID: "GPU-0", Used: 3 * units.GiB, Tasks: []model.TaskUse{{Task: a, Used: 3 * units.GiB}}}}})
	w.step(model.GPUsFound{At: w.now, GPUs: two[1:]})
	w.step(model.GPUsFound{At: w.now, GPUs: two})
	if g := w.gpu(0); g.OtherProcesses != 3*units.GiB || len(g.Residue) != 1 {
		t.Errorf("%s of others on the GPU, %v of suspended tasks", g.OtherProcesses, g.Residue)
	}
	w.step(model.GPUsFound{At: w.now, GPUs: two[1:]})
	w.exit(a, model.ExitInfrastructure)
	if n := len(w.s.GPUs()); n != 1 {
		t.Errorf("%d GPUs are known; one is gone and holds nothing", n)
	}
}

// TestRingSurvives checks that round-robin continues at its position when the GPUs are
// found again.
func TestRingSurvives(t *testing.T) {
	opt := plain()
	opt.Policy = "round-robin"
	w := newWorld(t, opt, 3)
	var infos []model.GPUInfo
	for _, g := range w.s.GPUs() {
		infos = append(infos, g.GPUInfo)
	}
	w.wantOn(w.submit(units.GiB, nil), 0)
	w.step(model.GPUsFound{At: w.now, GPUs: infos})
	w.wantOn(w.submit(units.GiB, nil), 1)
	w.exit(1, model.ExitOK)
	w.step(model.GPUsFound{At: w.now, GPUs: infos[1:]}) // the next GPU is still GPU 2
	w.wantOn(w.submit(units.GiB, nil), 2)
}

func TestEngine(t *testing.T) {
	w := newWorld(t, plain(), 1)
	w.step(model.EngineChanged{At: w.now})
	if w.s.EngineDown() != (model.Reason{Code: model.ReasonEngineDown}) {
		t.Errorf("engine: %+v", w.s.EngineDown())
	}
	a := w.submit(units.GiB, nil)
	b := w.submit(units.GiB, nil)
	w.sample(model.GPUSample{ID: "GPU-0"})
	w.wantOn(a)
	w.cancel(b)
	w.wantPhase(b, model.Cancelled)
	w.step(model.EngineChanged{At: w.now, Up: true})
	w.wantOn(a, 0)
	w.step(model.EngineChanged{At: w.now, Reason: "gone"})
	c := w.submit(units.GiB, nil)
	w.exit(a, model.ExitInfrastructure)
	w.wait(time.Hour)
	w.wantOn(a)
	w.step(model.EngineChanged{At: w.now, Up: true})
	w.wantOn(a, 0)
	w.wantOn(c, 0)
}
