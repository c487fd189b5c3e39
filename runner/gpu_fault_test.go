package runner

import (
	"slices"
	"strings"
	"testing"

	"carma/internal/units"
	"carma/mapper"
	"carma/runner/api"
	"carma/runner/gpu"
	"carma/runner/verify"
)

// TestBrokenGPUKept: a GPU with a fatal error stays out of service over restarts of the daemon,
// though the driver reports the error once. gpus, why and doctor give the reason. The fault
// ends when the source reports a reset, when the machine boots, and by carma undrain.
func TestBrokenGPUKept(t *testing.T) {
	long(t)
	const fault = "an uncorrectable memory error (Xid 48); to mend it: stop the daemon, nvidia-smi --gpu-reset -i 0, start it again"
	g := newRig(t, func(g *rig) { g.cards.devices = g.cards.devices[:1] })
	g.script("ok", printing(0))
	breaks := func() {
		t.Helper()
		g.cards.set(gpu.Sample{UUID: "GPU-a", Fault: fault, Lasts: true})
		g.eventually("the GPU is out of service", func() bool { return g.broken() })
	}
	stays := func() string {
		t.Helper()
		ref := g.run(api.Submit{Image: "ok", Mem: int64(units.GiB)})
		gpus, err := g.api.GPUs(g.ctx())
		if err != nil || gpus[0].Fault != fault || !gpus[0].FaultLasts {
			t.Fatalf("gpus: %+v, %v", gpus, err)
		}
		if why, err := g.api.Why(g.ctx(), ref); err != nil || !strings.Contains(why.Summary, fault) {
			t.Fatalf("why: %+v, %v", why, err)
		}
		g.eventually("doctor says so", func() bool {
			checks, err := g.api.Doctor(g.ctx())
			return err == nil && slices.ContainsFunc(checks, func(c api.Check) bool {
				return c.Name == "GPU health" && c.Status == "failure" && strings.Contains(c.Detail, fault)
			})
		})
		return ref
	}
	restart := func() {
		t.Helper()
		g.stop()
		g.cards.set(gpu.Sample{UUID: "GPU-a"}) // a new source knows no faults
		g.start()
	}

	breaks()
	restart()
	restart()
	ref := stays()
	g.cards.set(gpu.Sample{UUID: "GPU-a"}) // the source has seen that it was reset
	g.finished(ref)
	restart()
	g.finished(g.run(api.Submit{Image: "ok", Mem: int64(units.GiB)}))

	breaks()
	restart()
	ref = stays()
	if _, err := g.api.CloseGPUs(g.ctx(), api.CloseRequest{GPUs: []string{"0"}, Open: true}); err != nil {
		t.Fatal(err)
	}
	g.finished(ref)

	breaks()
	g.cards.mended = true // it is reset while no daemon runs
	restart()
	g.eventually("it is known to be reset", func() bool { return !g.broken() })
	g.cards.mended = false

	breaks()
	restart()
	ref = stays()
	g.opt.Boot = "another"
	restart()
	g.finished(ref)
	g.stop()
	if v, err := verify.Journal(g.dir, "test"); err != nil || len(v.Faults) > 0 || v.Differs != "" {
		t.Errorf("verify: %+v, %v", v, err)
	}
}

func (g *rig) broken() (is bool) {
	g.t.Helper()
	if err := g.loop.Look(g.ctx(), func(s *mapper.State) { is = s.GPUs()[0].Persistent != nil }); err != nil {
		g.t.Fatal(err)
	}
	return is
}
