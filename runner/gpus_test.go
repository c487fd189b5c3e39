package runner

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"carma/internal/units"
	"carma/runner/api"
	"carma/runner/gpu"
)

// process makes the files of a process in a container.
func (g *rig) process(pid int, container string) {
	g.t.Helper()
	dir := filepath.Join(g.proc, "proc", strconv.Itoa(pid))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		g.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "cgroup"), []byte("0::/carma/"+container+"\n"), 0o644); err != nil {
		g.t.Fatal(err)
	}
}

// TestProcessesAreAttributed: the memory of a task's processes is the task's,
// also for a daemon that was restarted. The rest is foreign.
func TestProcessesAreAttributed(t *testing.T) {
	g := newRig(t, func(g *rig) { g.proc = t.TempDir() })
	g.script("train", untilStopped)
	ref := g.run(api.Submit{Image: "train", Mem: int64(10 * units.GiB)})
	g.running(ref)
	all := g.containers()
	if len(all) != 1 {
		t.Fatalf("%d containers", len(all))
	}
	g.process(100, all[0].ID)
	g.process(101, all[0].ID)
	g.process(102, "somebody-elses")
	g.cards.set(gpu.Sample{UUID: "GPU-a", Used: 12 * units.GiB, Processes: []gpu.Process{
		{PID: 100, Used: 4 * units.GiB}, {PID: 101, Used: 2 * units.GiB}, {PID: 102, Used: 5 * units.GiB}, {PID: 103, Used: units.GiB},
	}})
	seen := func() bool {
		gpus, err := g.api.GPUs(g.ctx())
		return err == nil && len(gpus[0].Tasks) == 1 && gpus[0].Tasks[0].Used == int64(6*units.GiB) && gpus[0].Foreign == int64(6*units.GiB)
	}
	g.eventually("the task has its processes", seen)
	g.restart()
	g.eventually("the task has its processes again", seen)
	if _, err := g.api.Stop(g.ctx(), ref, api.StopRequest{}); err != nil {
		t.Fatal(err)
	}
	task := g.finished(ref)
	if peak := task.Attempts[0].Peak; peak != int64(6*units.GiB) {
		t.Errorf("its peak is %d, want that of its processes together", peak)
	}
	g.eventually("its container is forgotten", func() bool {
		return g.Runner.owners.Len() == 0
	})
}

// TestFaultDrains checks that a GPU with a fault gets no tasks, with the reason, and is used
// again when the fault has ended.
func TestFaultDrains(t *testing.T) {
	g := newRig(t)
	const fault = "it has fallen off the bus (Xid 79); to mend it: restart the machine"
	for _, d := range g.cards.devices {
		g.cards.set(gpu.Sample{UUID: d.UUID, Fault: fault})
	}
	g.eventually("the GPUs are out of service", func() bool {
		gpus, err := g.api.GPUs(g.ctx())
		return err == nil && gpus[0].Fault == fault && gpus[1].Fault == fault
	})
	g.script("ok", printing(0))
	ref := g.run(api.Submit{Image: "ok", Mem: int64(units.GiB)})
	why, err := g.api.Why(g.ctx(), ref)
	if err != nil || why.Position != 1 || why.GPUs[1].Rule != "fault" || !strings.Contains(why.Summary, fault) {
		t.Fatalf("why is %+v, %v", why, err)
	}
	checks, err := g.api.Doctor(g.ctx())
	if i := slices.IndexFunc(checks, func(c api.Check) bool { return c.Name == "GPU health" }); err != nil || i < 0 || checks[i].Status != "failure" || !strings.Contains(checks[i].Detail, "GPU 1: "+fault) {
		t.Errorf("doctor says %+v, %v", checks, err)
	}
	for _, d := range g.cards.devices {
		g.cards.set(gpu.Sample{UUID: d.UUID})
	}
	g.finished(ref)
}

func TestGPUDetails(t *testing.T) {
	g := newRig(t, func(g *rig) {
		g.cards.devices[1].Parent = "GPU-card"
		g.cards.notes = []string{"GPU 7 is left out: it has no UUID"}
	})
	g.cards.set(gpu.Sample{UUID: "GPU-a", SMACT: 0.9, Metrics: gpu.MetricsUtilization, Coarse: true, TemperatureC: 61, ECCErrors: 2, Warnings: []string{"slowed down because it is too hot"}})
	g.cards.set(gpu.Sample{UUID: "GPU-b", Metrics: gpu.MetricsGPM})
	var gpus []api.GPU
	g.eventually("the monitor has seen both", func() (ok bool) {
		var err error
		gpus, err = g.api.GPUs(g.ctx())
		return err == nil && gpus[0].Metrics != "" && gpus[1].Metrics != ""
	})
	a, b := gpus[0], gpus[1]
	if a.Metrics != "utilization" || !a.Coarse || a.TemperatureC != 61 || a.ECCErrors != 2 || len(a.Warnings) != 1 || a.Parent != "" || b.Metrics != "gpm" || b.Coarse || b.Parent != "GPU-card" {
		t.Errorf("GPUs %+v and %+v", a, b)
	}
	checks, err := g.api.Doctor(g.ctx())
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"GPU health":   "GPU 0: slowed down because it is too hot; GPU 7 is left out: it has no UUID",
		"GPU activity": "from utilization on GPU 0; from gpm on GPU 1: the share of time any kernel runs, not how busy the SMs are",
	} {
		i := slices.IndexFunc(checks, func(c api.Check) bool { return c.Name == name })
		if i < 0 || checks[i].Status != "warning" || checks[i].Detail != want {
			t.Errorf("%s: %+v", name, checks)
		}
	}
}
