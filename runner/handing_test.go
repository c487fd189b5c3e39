package runner

import (
	"strings"
	"testing"

	"carma/containers/containerstest"
	"carma/internal/units"
	"carma/runner/api"
)

// TestHanded checks that a task waits in the queue, with that reason in why, while the engine
// creates the container of another task, but not while that container starts.
func TestHanded(t *testing.T) {
	g := newRig(t, func(g *rig) { g.opt.Mapper.LaunchesAtOnce = 1 })
	g.script("loop", untilStopped)
	submit := func(name string) { g.run(api.Submit{Image: "loop", Name: name, Mem: int64(units.GiB)}) }
	g.engine.HangNext(containerstest.OpStart)
	submit("starting")
	submit("second")
	g.running("second")

	g.engine.HangNext(containerstest.OpCreate)
	submit("making")
	submit("waiting")
	waits := func() bool {
		why, err := g.api.Why(g.ctx(), "waiting")
		return err == nil && strings.Contains(why.Summary, "1 of at most 1 launches")
	}
	g.eventually("it waits for the launch before it", waits)
	if task, err := g.api.Task(g.ctx(), "waiting"); err != nil || task.Phase != "queued" {
		t.Errorf("it is %s, %v", task.Phase, err)
	}
	if _, err := g.api.Stop(g.ctx(), "making", api.StopRequest{}); err != nil {
		t.Fatal(err)
	}
	g.running("waiting")
}
