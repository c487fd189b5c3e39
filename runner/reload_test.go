package runner

import (
	"context"
	"testing"
	"time"

	"carma/containers/containerstest"
	"carma/internal/units"
	"carma/runner/access"
	"carma/runner/admission"
	"carma/runner/api"
	"carma/runner/machine"
	"carma/runner/request"
	"carma/runner/retention"
	"carma/runner/tasklog"
)

// TestReconfigure: the mapper's options and some others change while the daemon
// runs. Wrong options change nothing.
func TestReconfigure(t *testing.T) {
	g := newRig(t, func(g *rig) { g.opt.Mapper.MaxTasks, g.cards = 1, newCards(1, 40*units.GiB) })
	end := make(chan struct{})
	defer close(end)
	g.engine.AddImage("train", containerstest.Image{Run: func(context.Context, *containerstest.Process) int { <-end; return 0 }})
	g.running(g.run(api.Submit{Image: "train", Mem: int64(units.GiB)}))
	second := g.run(api.Submit{Image: "train", Mem: int64(units.GiB)})
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
	if l := g.live(); l.Pull != "never" || l.StopGrace != time.Minute || !g.authz.Administers(request.Caller{UID: 7, Groups: []string{"lab"}}) {
		t.Errorf("in force: %+v", l)
	}
}

// TestReconfigureMore checks that these settings can change too: the number of kept tasks, the
// share of a task, the visibility of its output, and the connections of a user. A configuration
// that exceeds the machine is refused as a whole.
func TestReconfigureMore(t *testing.T) {
	g := newRig(t)
	g.script("ok", printing(0, "a", "b"))
	first := g.run(api.Submit{Image: "ok"})
	g.finished(first)
	next := *g.live()
	next.Bounds = machine.Bounds{Most: machine.Share{CPUs: 1 << 20}}
	if err := g.Reconfigure(g.ctx(), g.opt.Mapper, next); err == nil {
		t.Error("more processors than there are were taken")
	}
	next.Bounds = machine.Bounds{Most: machine.Share{Pids: 77}}
	next.Open, next.Keep, next.PerUser.Connections = true, retention.Keep{Tasks: 1}, 5
	next.Probing.When = admission.ProbeNever
	next.Output = &tasklog.Limits{Attempt: 2 * tasklog.MinLimit}
	if err := g.Reconfigure(g.ctx(), g.opt.Mapper, next); err != nil {
		t.Fatal(err)
	}
	g.refusedAs(ann, api.Submit{Image: "ok", ContainerOptions: api.ContainerOptions{Pids: 78}}, 422, "at most 77")
	g.refusedAs(ann, api.Submit{Image: "ok", Probe: true}, 422, "does not probe")
	if got := g.Logs.Limits(); got.Attempt != 2*tasklog.MinLimit || got.Task != 8*tasklog.MinLimit {
		t.Errorf("limits of output: %+v", got)
	}
	second := g.run(api.Submit{Image: "ok"})
	g.finished(second)
	if rec, err := g.find.Find(second); err != nil || rec.Submit.Visibility != access.VisibilityOpen {
		t.Errorf("the task's output is %q, %v", rec.Submit.Visibility, err)
	}
	if n, err := g.retention.RemoveSome(g.ctx()); n != 1 || err != nil {
		t.Errorf("%d tasks were removed, %v", n, err)
	}
	if _, err := g.find.Find(first); !request.IsNotFound(err) {
		t.Errorf("the first: %v", err)
	}
}
