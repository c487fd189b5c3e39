package runner

import (
	"strings"
	"testing"

	"carma/internal/units"
	"carma/runner/api"
	"carma/runner/request"
)

// TestOnGPUs checks that a task runs on the named GPUs, as with docker's --gpus device=,
// although another GPU is free, also after a restart, and that why shows the pin.
func TestOnGPUs(t *testing.T) {
	g := newRig(t, byMemory)
	g.script("train", untilStopped)
	for named, want := range map[string]string{
		"9":        "--gpus device=9: no GPU 9; carma gpus lists them",
		"0,9":      "--gpus device=0,9: no GPU 9; carma gpus lists them",
		"GPU-none": "no GPU GPU-none",
	} {
		_, err := g.api.Submit(g.ctx(), api.Submit{Image: "train", GPUIDs: strings.Split(named, ",")})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", named, err, want)
		}
	}
	for _, wrong := range []api.Submit{
		{Image: "train", NoGPU: true, GPUIDs: []string{"1"}}, {Image: "train", GPUs: 2, GPUIDs: []string{"1"}}, {Image: "train", GPUs: api.AllGPUs, GPUIDs: []string{"1"}},
		{Image: "train", Mem: int64(39 * units.GiB), GPUs: 2, GPUIDs: []string{"1", "GPU-b"}}, // one GPU by two names
	} {
		if _, err := g.api.Submit(g.ctx(), wrong); err == nil {
			t.Errorf("%+v was taken", wrong)
		}
	}
	first := g.run(api.Submit{Image: "train", Mem: int64(30 * units.GiB), GPUIDs: []string{"1"}})
	if on := g.running(first); on.Attempts[0].GPUs[0].Index != 1 || on.GPUCount != 1 {
		t.Errorf("%+v", on)
	}
	second := g.run(api.Submit{Image: "train", Mem: int64(30 * units.GiB), GPUIDs: []string{"GPU-b"}})
	why, err := g.query.Why(g.ctx(), second)
	if err != nil || why.GPUs[0].Rule != "pinned" || why.GPUs[1].Rule != "memory" {
		t.Errorf("%+v, %v", why, err)
	}
	g.restart()
	if _, err := g.control.Stop(g.ctx(), request.Caller{Name: "root"}, first, api.StopRequest{}); err != nil {
		t.Fatal(err)
	}
	if on := g.running(second); on.Attempts[0].GPUs[0].Index != 1 {
		t.Errorf("after a restart: %+v", on.Attempts)
	}
	if p, err := g.api.Preview(g.ctx(), api.Submission{Tasks: []api.Submit{{Image: "train", Mem: 1 << 30, GPUIDs: []string{"1"}}}}); err != nil || len(p.Tasks[0].GPUs) != 1 || p.Tasks[0].GPUs[0].Index != 1 {
		t.Errorf("%+v, %v", p, err)
	}
}
