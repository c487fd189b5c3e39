package runner

import (
	"errors"
	"slices"
	"testing"

	"carma/containers/containerstest"
	"carma/internal/units"
	"carma/runner/api"
	"carma/runner/label"
	"carma/runner/machine"
	"carma/runner/verify"
)

// TestHostResized changes the host memory and processors of a running task. The allocation and
// the container's limits change at once, an amount above the machine's is refused, and the next
// daemon sets the limits again.
func TestHostResized(t *testing.T) {
	g := newRig(t, func(g *rig) { g.opt.Bounds.All = machine.Share{HostMem: units.GiB, CPUs: 1} })
	task := must[api.Task](t)
	g.script("busy", untilStopped)
	first := g.run(api.Submit{Image: "busy", Mem: int64(units.GiB), HostMem: 512 << 20})
	second := g.run(api.Submit{Image: "busy", Mem: int64(units.GiB), HostMem: 256 << 20, CPUs: 0.25})
	g.running(first)
	g.running(second)
	host := func() *api.Host { return must[api.Info](t)(g.api.Info(g.ctx())).Host }
	for what, c := range map[string]struct {
		update api.Update
		status int
		words  string
	}{
		"more than there is now": {api.Update{HostMem: new(int64(900 << 20))}, 409, "task 1 runs on as it is: it needs 900 MiB of host memory; 768 MiB of 1.0 GiB can be booked now"},
		"more than there is":     {api.Update{HostMem: new(int64(2 * units.GiB))}, 422, "--host-mem"},
		"other processors":       {api.Update{CPUs: new(0.9)}, 409, "it needs 0.9 processors; 0.25 of 1 are booked"},
		"too little":             {api.Update{HostMem: new(int64(1 << 20))}, 422, "--host-mem 1 MiB: no program starts in that"},
		"with memory of the GPU": {api.Update{HostMem: new(int64(64 << 20)), Mem: new(int64(units.GiB))}, 409, "carma requeue --hold 1"},
	} {
		_, err := g.api.Update(g.ctx(), first, c.update)
		if err == nil {
			t.Errorf("%s is taken", what)
			continue
		}
		g.refusedTo(err, c.status, c.words)
	}
	if got := g.phase(first); got.Submit.HostMem != 512<<20 || len(g.engine.Memory(label.ContainerName(g.instance, 1, 1))) > 0 {
		t.Errorf("after refusals it asks for %d and its container was given %d", got.Submit.HostMem, g.engine.Memory(label.ContainerName(g.instance, 1, 1)))
	}
	got := task(g.api.Update(g.ctx(), first, api.Update{HostMem: new(int64(768 << 20)), CPUs: new(0.5)}))
	if h := got.Attempts[0].Host; h.Memory != 768<<20 || h.Limit != 768<<20 || h.CPUs != 0.5 || h.Weight != 0.5 || got.Submit.HostMem != 768<<20 {
		t.Errorf("it has %+v", h)
	}
	if h := host(); h.Booked != 1<<30 || h.CPUsBooked != 0.75 {
		t.Errorf("the machine has %+v", h)
	}
	gave := func(memory int64, cpus containerstest.CPUs, times int) {
		t.Helper()
		name := label.ContainerName(g.instance, 1, 1)
		m, c := g.engine.Memory(name), g.engine.CPUs(name)
		if len(m) != times || len(c) != times || m[times-1] != memory || c[times-1] != cpus {
			t.Errorf("its container was given %d and %+v, want %d times, at last %d and %+v", m, c, times, memory, cpus)
		}
	}
	gave(768<<20, containerstest.CPUs{CPUs: 0.5, Weight: 500}, 1)
	g.restart()
	g.running(first)
	g.eventually("it has its limits again", func() bool { return len(g.engine.CPUs(label.ContainerName(g.instance, 1, 1))) == 2 })
	gave(768<<20, containerstest.CPUs{CPUs: 0.5, Weight: 500}, 2)

	// The engine refuses: the allocation has changed, and the answer says so.
	g.engine.FailNext(containerstest.OpMemory, errors.New("no such knob"))
	_, err := g.api.Update(g.ctx(), first, api.Update{HostMem: new(int64(128 << 20))})
	g.refusedTo(err, 409, "what is booked for task 1 has changed, the limits of its container have not: no such knob; the same command tries again")
	task(g.api.Update(g.ctx(), first, api.Update{HostMem: new(int64(128 << 20))}))
	gave(128<<20, containerstest.CPUs{CPUs: 0.5, Weight: 500}, 3)

	// 0 means no request: all processors, and all unallocated memory.
	task(g.api.Update(g.ctx(), first, api.Update{CPUs: new(0.0), HostMem: new(int64(0))}))
	if h, m := g.phase(first).Attempts[0].Host, g.engine.Memory(label.ContainerName(g.instance, 1, 1)); h.CPUs != 0 || h.Limit != 768<<20 || m[len(m)-1] != h.Limit || slices.Max(g.engine.Memory(label.ContainerName(g.instance, 1, 1))) != h.Limit {
		t.Errorf("it has %+v, and its container was given %d", h, m)
	}
	if _, err := g.api.Stop(g.ctx(), second, api.StopRequest{}); err != nil {
		t.Fatal(err)
	}
	g.finished(second)
	_, err = g.api.Update(g.ctx(), second, api.Update{CPUs: new(0.5)})
	g.refusedTo(err, 409, "task 2 has ended")
	g.stop()
	if v, err := verify.Journal(g.dir, "test"); err != nil || len(v.Faults) > 0 {
		t.Errorf("verify: %+v, %v", v, err)
	}
}
