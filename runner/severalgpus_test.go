package runner

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"carma/containers"
	"carma/containers/containerstest"
	"carma/internal/units"
	"carma/runner/api"
	"carma/runner/gpu"
)

// TestSeveralMIGInstances checks that a task on several GPUs cannot use MIG instances, and that
// the reason says so.
func TestSeveralMIGInstances(t *testing.T) {
	g := newRig(t, func(g *rig) {
		g.cards.devices[0].Parent, g.cards.devices[1].Parent = "GPU-card", "GPU-card"
	})
	g.script("train", printing(0))
	_, err := g.api.Submit(g.ctx(), api.Submit{Image: "train", Mem: 1 << 30, GPUs: 2})
	if want := "--gpus: 2 GPUs asked for, one machine has 0 whole GPUs and MIG instances, of which a program can use one at a time"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("two instances: %v, want %s", err, want)
	}
	task := g.finished(g.run(api.Submit{Image: "train", Mem: 1 << 30, GPUs: api.AllGPUs}))
	if task.Phase != "succeeded" || len(task.Attempts[0].GPUs) != 1 {
		t.Errorf("--gpus all: %s on %+v", task.Phase, task.Attempts[0].GPUs)
	}
}

// TestCloseGPUs checks that a task on several GPUs gets GPUs that are close to each other, and
// that the API shows how close.
func TestCloseGPUs(t *testing.T) {
	g := newRig(t, func(g *rig) {
		g.cards = newCards(3, 40*units.GiB)
		g.cards.devices[0].Socket, g.cards.devices[1].Link, g.cards.devices[2].Link = "1", "7", "7"
	})
	g.script("train", printing(0))
	task := g.finished(g.run(api.Submit{Image: "train", Mem: 1 << 30, GPUs: 2}))
	if on := task.Attempts[0].GPUs; len(on) != 2 || on[0].Index+on[1].Index != 3 {
		t.Errorf("it was on %+v", on)
	}
	all, err := g.overview.ListGPUs(g.ctx())
	if err != nil || all[0].NUMANode != "1" || all[1].NVLink != "7" || all[2].NVLink != "7" {
		t.Errorf("%+v, %v", all, err)
	}
}

// TestNearProcessors checks that, with the setting processors: near, a task runs at the NUMA
// node of its GPUs, if that is known.
func TestNearProcessors(t *testing.T) {
	root := t.TempDir()
	for node, list := range map[string]string{"node0": "0-3\n", "node1": "4-7,12-15\n"} {
		folder := filepath.Join(root, "sys/devices/system/node", node)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "cpulist"), []byte(list), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	g := newRig(t, byMemory, func(g *rig) {
		g.opt.NearCPUs, g.sys = true, root
		g.cards = newCards(3, 40*units.GiB)
		g.cards.devices[0].Socket, g.cards.devices[1].Socket = "0", "1"
	})
	made := make(chan containers.Spec, 1)
	g.script("train", func(_ context.Context, p *containerstest.Process) int { made <- p.Spec; return 0 })
	for _, row := range []struct {
		free []int // the other GPUs are full
		gpus int
		want string
	}{{[]int{0}, 1, "0-3"}, {[]int{1}, 1, "4-7,12-15"}, {[]int{2}, 1, ""}, {[]int{0, 1}, 2, ""}, {nil, 0, ""}} {
		g.onlyFree(row.free...)
		g.finished(g.run(api.Submit{Image: "train", GPUs: row.gpus, NoGPU: row.gpus == 0, Mem: int64(units.GiB) * int64(min(row.gpus, 1))}))
		if spec := <-made; spec.CPUSet != row.want || len(spec.GPUs) != row.gpus {
			t.Errorf("free are %v: on %v with processors %q, want %q", row.free, spec.GPUs, spec.CPUSet, row.want)
		}
	}
}

// onlyFree fills the memory of all GPUs but these, by index, and waits until samples show it.
func (g *rig) onlyFree(free ...int) {
	g.t.Helper()
	for i, d := range g.cards.devices {
		s := gpu.Sample{UUID: d.UUID}
		if !slices.Contains(free, i) {
			s.Used = d.Capacity
		}
		g.cards.set(s)
	}
	g.eventually("the samples are seen", func() bool {
		all, err := g.overview.ListGPUs(g.ctx())
		for i, v := range all {
			if (v.Foreign == 0) != slices.Contains(free, i) {
				return false
			}
		}
		return err == nil
	})
}
