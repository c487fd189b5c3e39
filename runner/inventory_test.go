package runner

import (
	"context"
	"slices"
	"strings"
	"testing"

	"carma/internal/units"
	"carma/mapper"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/gpu"
)

// comers is a source whose cards are added and removed.
type comers struct {
	*cards
	news chan struct{}
}

func (c *comers) News() <-chan struct{} { return c.news }

func (c *comers) GPUs(context.Context) ([]gpu.Device, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.devices), nil
}

func (c *comers) have(devices ...gpu.Device) {
	c.mu.Lock()
	c.devices = devices
	c.mu.Unlock()
	c.news <- struct{}{}
}

// TestComing checks that a daemon of a cluster starts without GPUs, adds GPUs that appear, and
// keeps a task while its GPU is not offered, with that reason.
func TestComing(t *testing.T) {
	c := &comers{news: make(chan struct{}, 1)}
	g := newRig(t, byMemory, func(g *rig) {
		g.cards = newCards(0, 0)
		c.cards = g.cards
		g.source = func(*cards) gpu.Source { return c }
		g.opt.Bounds.Elsewhere = true
	})
	g.script("busy", untilStopped)
	card := func(uuid, node string, index int) gpu.Device {
		return gpu.Device{UUID: uuid, Index: index, Model: "test", Capacity: 40 * units.GiB, Node: node, Sharing: model.SharingTurns, Shares: true}
	}
	a, b := card("GPU-a", "n1", 0), card("GPU-b", "n2", 1)
	node := func() (nodes []string, missing []bool) {
		_ = g.loop.Look(g.ctx(), func(s *mapper.State) {
			for _, x := range s.GPUs() {
				nodes, missing = append(nodes, x.Node+" "+string(x.ID)+" "+string(x.Sharing)), append(missing, x.Missing)
			}
		})
		return nodes, missing
	}
	if _, err := g.api.Submit(g.ctx(), api.Submit{Image: "busy"}); err == nil || !strings.Contains(err.Error(), "the cluster has no GPUs now") {
		t.Errorf("a task without any GPU: %v", err)
	}
	c.have(a)
	g.eventually("the GPU is there", func() bool { nodes, _ := node(); return len(nodes) == 1 })
	ref := g.run(api.Submit{Image: "busy", Mem: int64(10 * units.GiB)})
	g.until(ref, "running", func(t api.Task) bool { return t.Phase == "running" })
	c.have(b)
	g.eventually("the GPU is missing", func() bool {
		nodes, missing := node()
		return slices.Equal(nodes, []string{"n1 GPU-a time-slicing", "n2 GPU-b time-slicing"}) && slices.Equal(missing, []bool{true, false})
	})
	if got := g.gpus.Capacity("GPU-a"); got != 40*units.GiB {
		t.Errorf("of the missing GPU only %s is known", got)
	}
	c.have(a, b)
	g.eventually("it is back", func() bool { _, missing := node(); return slices.Equal(missing, []bool{false, false}) })
	// GPUs of one task are on one machine.
	c.have(a, b, card("GPU-c", "n2", 2))
	g.eventually("all three are there", func() bool { nodes, _ := node(); return len(nodes) == 3 })
	two := g.run(api.Submit{Image: "busy", Mem: int64(10 * units.GiB), GPUs: 2})
	task := g.until(two, "running", func(t api.Task) bool { return t.Phase == "running" })
	var got []string
	for _, on := range task.Attempts[0].GPUs {
		got = append(got, on.UUID)
	}
	if slices.Sort(got); !slices.Equal(got, []string{"GPU-b", "GPU-c"}) {
		t.Errorf("the task on two GPUs has %v", got)
	}
}
