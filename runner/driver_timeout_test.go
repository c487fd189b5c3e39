package runner

import (
	"strings"
	"testing"

	"carma/internal/units"
	"carma/runner/api"
)

// TestHungEngineHoldsUpNobody checks that an engine that hangs delays no answer (finding F10).
func TestHungEngineHoldsUpNobody(t *testing.T) {
	long(t)
	g := newRig(t, func(g *rig) { g.opt.Init = "/bin/true" })
	long := g.gated("long")
	ref := g.run(api.Submit{Image: "long", Mem: int64(units.GiB)})
	g.running(ref)
	stopped := g.run(api.Submit{Image: "long", Mem: int64(units.GiB)})
	g.running(stopped)
	g.engine.Freeze()
	defer g.engine.Thaw()
	many := api.Submission{}
	for range 20 {
		many.Tasks = append(many.Tasks, api.Submit{Image: "other", Mem: int64(units.GiB)})
	}
	all, err := g.api.SubmitAll(g.ctx(), many)
	if err != nil || len(all.Warnings) != 1 || !strings.Contains(all.Warnings[0], "does not answer") {
		t.Fatalf("submission to an engine that hangs: %+v, %v", all, err)
	}
	if _, err := g.api.Info(g.ctx()); err != nil {
		t.Error(err)
	}
	checks, err := g.api.Doctor(g.ctx())
	if err != nil || checks[0].Status != "failure" || !strings.Contains(checks[0].Detail, "does not answer") {
		t.Errorf("doctor: %+v, %v", checks, err)
	}
	if _, err := g.api.Prove(g.ctx(), "long"); err == nil || !strings.Contains(err.Error(), "no answer") {
		t.Errorf("proof: %v", err)
	}
	g.asksToStop(stopped, api.StopRequest{Now: true})
	g.engine.Thaw()
	g.script("other", printing(0, "here"))
	if task := g.finished(stopped); task.Phase != "cancelled" {
		t.Errorf("the stopped task is %s", task.Phase)
	}
	close(long.gate)
	if task := g.finished(ref); task.Phase != "succeeded" || len(task.Attempts) != 1 {
		t.Errorf("the task that ran is %s after %+v", task.Phase, task.Attempts)
	}
}
