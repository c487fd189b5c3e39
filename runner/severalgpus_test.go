package runner

import (
	"strings"
	"testing"

	"carma/mapper/units"
	"carma/runner/api"
)

// MIG instances are no GPUs for a task on several, in words that say why.
func TestSeveralMIGInstances(t *testing.T) {
	g := newRig(t, func(g *rig) {
		g.cards.devices[0].Parent, g.cards.devices[1].Parent = "GPU-card", "GPU-card"
	})
	g.script("train", printing(0))
	_, err := g.api.Submit(g.ctx(), api.Submit{Image: "train", Mem: 1 << 30, GPUs: 2})
	if want := "--gpus: 2 GPUs asked for, this server has 0 whole GPUs and MIG instances, of which a program can use one at a time"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("two instances: %v, want %s", err, want)
	}
	task := g.finished(g.run(api.Submit{Image: "train", Mem: 1 << 30, GPUs: api.AllGPUs}))
	if task.Phase != "succeeded" || len(task.Attempts[0].GPUs) != 1 {
		t.Errorf("--gpus all: %s on %+v", task.Phase, task.Attempts[0].GPUs)
	}
}

// Where GPUs are close to each other, a task on several goes there, and the API says so.
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
	all, err := g.ListGPUs(g.ctx())
	if err != nil || all[0].NUMANode != "1" || all[1].NVLink != "7" || all[2].NVLink != "7" {
		t.Errorf("%+v, %v", all, err)
	}
}
