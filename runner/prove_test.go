package runner

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"carma/containers/containerstest"
)

// showing simulates `carma-init show`: it prints the container's view, except the variables in
// without.
func showing(gpus string, without ...string) containerstest.Script {
	return func(_ context.Context, p *containerstest.Process) int {
		for _, kv := range p.Spec.Env {
			if key, _, _ := strings.Cut(kv, "="); !slices.Contains(without, key) {
				p.Out("env %s", kv)
			}
		}
		p.Out("%s", gpus)
		return 0
	}
}

// TestProve: the proof reports a container's view. It fails if that differs from the
// container's grant, and leaves no container.
func TestProve(t *testing.T) {
	long(t)
	l := newLimitRig(t, "615.1", withMPS(t))
	l.script("good", showing("gpu GPU-a, 256"))
	l.script("blind", showing("smi not found"))
	l.script("bad", showing("gpu GPU-a, 256", "TF_FORCE_GPU_ALLOW_GROWTH"))
	for _, row := range []struct{ image, status, want string }{
		{"good", "ok", "driver limit set while it was parked and read back (soft 256 MiB, hard 256 MiB), XLA_PYTHON_CLIENT_PREALLOCATE=false, TF_FORCE_GPU_ALLOW_GROWTH=true, CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=256M, GPU GPU-a, 256 MiB by nvidia-smi; not tried"},
		{"blind", "ok", "not proven: that the GPU heeds it (nvidia-smi in it: not found)"},
		{"bad", "failure", "given TF_FORCE_GPU_ALLOW_GROWTH=true and does not see it"},
	} {
		checks, err := l.api.Prove(l.ctx(), row.image)
		if err != nil || len(checks) != 3 || checks[2].Detail != "not tried: carma cannot suspend tasks on cards" {
			t.Fatalf("%s: %+v, %v", row.image, checks, err)
		}
		for i, c := range checks[:2] {
			if c.Name != fmt.Sprintf("proof on GPU %d", i) || c.Status != row.status || !strings.Contains(c.Detail, row.want) {
				t.Errorf("%s: %+v, want %s %q", row.image, c, row.status, row.want)
			}
		}
	}
	if err := l.smi.Break(true); err != nil {
		t.Fatal(err)
	}
	if checks, err := l.api.Prove(l.ctx(), "good"); err != nil || checks[0].Status != "failure" || !strings.Contains(checks[0].Detail, "Unknown Error") {
		t.Errorf("a tool that refuses: %+v, %v", checks, err)
	}
	if list, err := l.engine.List(l.ctx(), nil); err != nil || len(list) != 0 {
		t.Errorf("left behind: %+v, %v", list, err)
	}
	l.nothingLeft()
	if _, err := l.api.Prove(l.ctx(), "missing"); err == nil || !strings.Contains(err.Error(), "not on this machine") {
		t.Errorf("an image that is not there: %v", err)
	}
}
