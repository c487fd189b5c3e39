package runner

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	"carma/containers/containerstest"
	"carma/internal/units"
	"carma/mapper"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/gpu"
	"carma/runner/mps"
	"carma/runner/sharing"
)

// auto does the same as withMPS, but lets tasks share GPUs without MPS if MPS does not work.
func auto(t *testing.T) func(*rig) {
	with := withMPS(t)
	return func(g *rig) {
		with(g)
		g.opt.MPS.Auto = true
	}
}

// told returns how GPU-a is shared according to the mapper.
func (g *rig) told() (how model.Sharing) {
	g.t.Helper()
	err := g.loop.Look(g.ctx(), func(s *mapper.State) { how = s.GPUs()[0].Sharing })
	if err != nil {
		g.t.Fatal(err)
	}
	return how
}

// saysSharing returns the check of doctor about it.
func (g *rig) saysSharing() api.Check {
	g.t.Helper()
	checks, err := g.api.Doctor(g.ctx())
	if err != nil {
		g.t.Fatal(err)
	}
	for _, c := range checks {
		if c.Name == "GPU sharing" {
			return c
		}
	}
	g.t.Fatalf("doctor says %+v", checks)
	return api.Check{}
}

// TestSharingIsTold: the mapper, carma gpus and doctor see how tasks share each GPU.
func TestSharingIsTold(t *testing.T) {
	long(t)
	with := func(change func(*sharing.MPS, *gpu.Device)) func(*rig) {
		return func(g *rig) {
			g.opt.MPS = &sharing.MPS{Groups: &mps.Groups{Dir: t.TempDir(), Binary: os.Args[0]}}
			change(g.opt.MPS, &g.cards.devices[0])
		}
	}
	for _, row := range []struct {
		name   string
		with   func(*rig)
		want   model.Sharing
		api    string
		status string
		says   string
	}{
		{"off", func(*rig) {}, model.SharingTurns, "time-slicing", "ok", "GPU 0, 1: by turns, which cost 10 %"},
		{"wanted, and not there", func(g *rig) { g.opt.NoMPS = "nvidia-cuda-mps-control is not installed" }, model.SharingTurns, "time-slicing", "warning",
			"GPU 0, 1: by turns, which cost 10 % where tasks fill the GPU's time (no MPS: nvidia-cuda-mps-control is not installed)"},
		{"by user", with(func(m *sharing.MPS, _ *gpu.Device) { m.Auto = true }), model.SharingUsers, "mps-user", "ok", "GPU 0, 1: each user's tasks by MPS, at the same time; users take turns; 0 MPS control daemons"},
		{"all users", with(func(m *sharing.MPS, _ *gpu.Device) { m.Auto, m.Groups.Shared = true, true }), model.SharingMPS, "mps", "ok", "GPU 0, 1: by MPS, at the same time"},
		{"MIG", with(func(m *sharing.MPS, d *gpu.Device) { m.Auto, d.Parent = true, "GPU-card" }), model.SharingTurns, "time-slicing", "ok", "GPU 0: by turns, which cost 10 % where tasks fill the GPU's time (no MPS: it is a MIG instance); GPU 1: each"},
		{"MIG, asked for", with(func(_ *sharing.MPS, d *gpu.Device) { d.Parent = "GPU-card" }), model.SharingUsers, "mps-user", "failure", "not"},
		{"exclusive-process", with(func(m *sharing.MPS, d *gpu.Device) { m.Auto, d.Exclusive = true, true }), model.SharingAlone, "alone", "warning", "GPU 0: one task at a time (no MPS: its compute mode"},
		{"exclusive-process, off", func(g *rig) { g.cards.devices[0].Exclusive = true }, model.SharingAlone, "alone", "warning", "GPU 0: one task at a time; GPU 1: by turns"},
	} {
		t.Run(row.name, func(t *testing.T) {
			g := newRig(t, row.with)
			g.eventually("the mapper has its GPUs", func() bool {
				gpus, err := g.api.GPUs(g.ctx())
				return err == nil && len(gpus) == 2 && gpus[0].Sharing == row.api
			})
			if got := g.told(); got != row.want {
				t.Errorf("the mapper is told %q, want %q", got, row.want)
			}
			if c := g.saysSharing(); c.Status != row.status || !strings.Contains(c.Detail, row.says) || (c.Status == "ok") != (c.Fix == "") {
				t.Errorf("doctor: %+v", c)
			}
		})
	}
}

// TestAutoFallsBack: if the control daemon does not start, tasks share the GPU by time slices,
// and the mapper knows it. With `mps: user` they would wait.
func TestAutoFallsBack(t *testing.T) {
	long(t)
	broken, err := exec.LookPath("false")
	if err != nil {
		t.Fatal(err)
	}
	g := newRig(t, auto(t))
	works := g.opt.MPS.Groups.Binary
	g.stop()
	g.opt.MPS.Groups.Binary = broken
	g.start()
	g.script("train", untilStopped)
	if g.told() != model.SharingUsers {
		t.Fatalf("told %q", g.told())
	}
	ref := g.run(api.Submit{Image: "train", Mem: int64(units.GiB)})
	g.running(ref)
	g.eventually("the mapper knows", func() bool { return g.told() == model.SharingTurns })
	if c := g.saysSharing(); c.Status != "warning" || !strings.Contains(c.Detail, "by turns") || !strings.Contains(c.Detail, "(no MPS: MPS get_default") {
		t.Errorf("doctor: %+v", c)
	}

	// The next daemon finds MPS working, and that the task beside it is no client.
	g.stop()
	g.opt.MPS.Groups.Binary = works
	g.start()
	g.eventually("it is adopted", func() bool { return g.told() == model.SharingTurns })
	if c := g.saysSharing(); c.Status != "ok" || !strings.Contains(c.Detail, "a task there is no client of MPS") {
		t.Errorf("doctor: %+v", c)
	}
	if _, err := g.api.Stop(g.ctx(), ref, api.StopRequest{}); err != nil {
		t.Fatal(err)
	}
	g.finished(ref)
	g.eventually("MPS is used again", func() bool { return g.told() == model.SharingUsers })
	specs := make(chan *containerstest.Process, 1)
	g.script("client", func(_ context.Context, p *containerstest.Process) int { specs <- p; return 0 })
	g.finished(g.run(api.Submit{Image: "client", Mem: int64(units.GiB)}))
	if pipeOf(<-specs) == "" {
		t.Error("the next task is no client")
	}
	if got := g.told(); got != model.SharingUsers {
		t.Errorf("told %q", got)
	}
}

// TestClientIsAdopted checks that an MPS client that an earlier daemon has started is also a
// client for the next daemon.
func TestClientIsAdopted(t *testing.T) {
	long(t)
	g := newRig(t, auto(t))
	g.script("train", untilStopped)
	ref := g.run(api.Submit{Image: "train", Mem: int64(units.GiB)})
	g.running(ref)
	g.restart()
	g.running(ref)
	g.eventually("its worker has adopted it", func() bool {
		return g.owners.Len() > 0
	})
	if got := g.told(); got != model.SharingUsers {
		t.Errorf("told %q", got)
	}
}
