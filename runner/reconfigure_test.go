package runner

import (
	"context"
	"testing"
	"time"

	"carma/containers/containerstest"
	"carma/mapper"
	"carma/runner/api"
)

// TestReconfigure: the mapper's options and some others change while the daemon
// runs; options that cannot be change nothing.
func TestReconfigure(t *testing.T) {
	g := newRig(t, func(g *rig) { g.opt.Mapper.MaxTasks, g.cards = 1, newCards(1, 40*mapper.GiB) })
	end := make(chan struct{})
	defer close(end)
	g.engine.AddImage("train", containerstest.Image{Run: func(context.Context, *containerstest.Process) int { <-end; return 0 }})
	g.running(g.run(api.Submit{Image: "train", Mem: int64(mapper.GiB)}))
	second := g.run(api.Submit{Image: "train", Mem: int64(mapper.GiB)})
	options := g.opt.Mapper
	options.MaxTasks = -1
	if err := g.Reconfigure(g.ctx(), options, Live{}); err == nil || g.live().Pull != "missing" {
		t.Errorf("a fault was taken: %v, %+v", err, g.live())
	}
	options.MaxTasks, options.SlowdownCap = 2, 100
	options.Policy = "first-fit"
	options.SMACTCap = 0
	if err := g.Reconfigure(g.ctx(), options, Live{Pull: "never", StopGrace: time.Minute, AdminGroup: "lab"}); err != nil {
		t.Fatal(err)
	}
	g.running(second)
	if l := g.live(); l.Pull != "never" || l.StopGrace != time.Minute || !g.admin(Caller{UID: 7, Groups: []string{"lab"}}) {
		t.Errorf("in force: %+v", l)
	}
}
