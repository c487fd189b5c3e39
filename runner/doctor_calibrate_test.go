package runner

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"carma/containers"
	"carma/containers/containerstest"
	"carma/internal/units"
	"carma/runner/api"
	"carma/runner/request"
)

// TestCalibrate: the program runs in a container on idle GPUs, its figures reach the estimator,
// and no container or file is left. Without an idle GPU, an image or a result the error has one
// line.
func TestCalibrate(t *testing.T) {
	var got []string
	var told error
	specs := make(chan containers.Spec, 8)
	g := newRig(t, byMemory, func(g *rig) {
		g.opt.AdminGroup = "lab"
		g.opt.Calibrate = func(lines []string, capacity units.Bytes, _ time.Time) (now, before api.Environment, err error) {
			got = lines
			return api.Environment{Name: "here", Context: int64(capacity / 100)}, api.Environment{Name: "was"}, told
		}
	})
	program := func(code int, line string) containerstest.Script {
		return func(_ context.Context, p *containerstest.Process) int {
			specs <- p.Spec
			p.Out("%s", line)
			return code
		}
	}
	g.script("torch", program(0, "figures"))
	g.script("broken", program(1, "sh: python3: not found"))
	c, err := g.Calibrate(g.as(oper), oper, "torch")
	if err != nil || c.Now.Name != "here" || c.Now.Context != int64(40*units.GiB/100) || c.Before.Name != "was" || c.Model != "test" || c.Simulated || !slices.Equal(got, []string{"figures"}) {
		t.Errorf("%+v, %v, from %q", c, err, got)
	}
	spec := <-specs
	if len(spec.GPUs) != 2 || len(spec.Command) != 1 || !strings.Contains(spec.Command[0], "import torch") || spec.Entrypoint[0] != "/bin/sh" || len(limitsOf(spec.Env)) > 0 {
		t.Errorf("its container: GPUs %q, entrypoint %q, environment %q", spec.GPUs, spec.Entrypoint, spec.Env)
	}
	refused := func(image string, status int, want string) {
		t.Helper()
		var no *request.Error
		if _, err := g.Calibrate(g.as(oper), oper, image); !errors.As(err, &no) || no.Status != status || !strings.Contains(no.Text, want) || strings.Contains(no.Text, "\n") {
			t.Errorf("%v, want %d %q", err, status, want)
		}
	}
	refused("missing", 404, "image missing is not on this machine; name one that is, with PyTorch")
	refused("broken", 422, "image broken: the program ended: sh: python3: not found")
	told = errors.New("the program printed no figures")
	refused("torch", 422, "image torch: the program printed no figures")
	if list, err := g.engine.List(g.ctx(), nil); err != nil || len(list) > 0 {
		t.Errorf("left behind: %+v, %v", list, err)
	}
	g.script("train", untilStopped)
	for range 2 {
		g.running(g.run(api.Submit{Image: "train", Mem: int64(30 * units.GiB)}))
	}
	refused("torch", 409, "no GPU is idle with 6.0 GiB free")
	if _, err := g.api.Calibrate(g.ctx(), ""); err == nil {
		t.Error("without an image")
	}
}

// limitsOf returns the variables by which carma limits frameworks.
func limitsOf(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		return !strings.HasPrefix(kv, "XLA_") && !strings.HasPrefix(kv, "TF_") && !strings.HasPrefix(kv, "CUDA_MPS")
	})
}

// TestCalibrateSimulated checks, with simulated GPUs, that the image's own program simulates
// the calibration.
func TestCalibrateSimulated(t *testing.T) {
	g := newRig(t, func(g *rig) {
		g.opt.Speed, g.opt.SetSpeed = 1, func(float64) {}
		g.opt.Calibrate = func([]string, units.Bytes, time.Time) (now, before api.Environment, err error) {
			return now, before, nil
		}
	})
	g.script("simtask", func(_ context.Context, p *containerstest.Process) int {
		if len(p.Spec.Entrypoint) > 0 || !slices.Equal(p.Spec.Command, []string{"calibrate"}) {
			t.Errorf("it runs %q %q", p.Spec.Entrypoint, p.Spec.Command)
		}
		return 0
	})
	if c, err := g.Calibrate(g.as(root20000), root20000, "simtask"); err != nil || !c.Simulated {
		t.Errorf("%+v, %v", c, err)
	}
}

var root20000 = request.Caller{Name: "root"}
