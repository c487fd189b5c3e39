package runner

import (
	"context"
	"slices"
	"testing"

	"carma/containers/containerstest"
	"carma/internal/units"
	"carma/runner/api"
	"carma/runner/limiter"
)

// TestCaps: the frameworks of a task that may share its GPUs are limited, unless the task or
// its image sets the variables itself. The frameworks of a task alone on its GPUs are not.
func TestCaps(t *testing.T) {
	specs := make(chan *containerstest.Process, 4)
	start := func(caps string) *rig {
		g := newRig(t, func(g *rig) { g.opt.Limits = limiter.Options{Caps: caps, Context: units.GiB} })
		run := func(_ context.Context, p *containerstest.Process) int { specs <- p; return 0 }
		g.script("train", run)
		g.engine.AddImage("own", containerstest.Image{Run: run, Env: []string{"PATH=/bin", "TF_FORCE_GPU_ALLOW_GROWTH=false"}})
		return g
	}
	const jax, tf = "XLA_PYTHON_CLIENT_PREALLOCATE=false", "TF_FORCE_GPU_ALLOW_GROWTH=true"
	const torch = "PYTORCH_ALLOC_CONF=expandable_segments:True,per_process_memory_fraction:0.100"
	submit := api.Submit{Image: "train", Mem: int64(5 * units.GiB), Env: []string{"PYTORCH_ALLOC_CONF=expandable_segments:True"}}
	check := func(g *rig, s api.Submit, want, not []string) {
		t.Helper()
		g.finished(g.run(s))
		p := <-specs
		for _, kv := range want {
			if !slices.Contains(p.Spec.Env, kv) {
				t.Errorf("environment %q lacks %s", p.Spec.Env, kv)
			}
		}
		for _, kv := range not {
			if slices.Contains(p.Spec.Env, kv) {
				t.Errorf("environment %q has %s", p.Spec.Env, kv)
			}
		}
	}
	g := start(limiter.CapsGrowth)
	check(g, submit, []string{jax, tf}, []string{torch})
	own := submit
	own.Image = "own"
	check(g, own, []string{jax}, []string{tf})
	alone := submit
	alone.Mem, alone.Exclusive = 0, true
	check(g, alone, nil, []string{jax, tf})
	check(start(limiter.CapsFractions), submit, []string{jax, tf, torch, "XLA_PYTHON_CLIENT_MEM_FRACTION=0.100"}, nil)
	check(start(limiter.CapsOff), submit, nil, []string{jax, tf, torch})
}
