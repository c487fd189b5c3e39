package runner

import (
	"context"
	"strings"
	"sync"
	"testing"

	"carma/containers/containerstest"
	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/journal"
)

// TestLaunchIsDurable: when a task's program runs, the journal has the decision
// to launch it, and its event counts as decided. Earlier, decisions were stored
// some 200 ms later, so a program of another version could decide differently.
func TestLaunchIsDurable(t *testing.T) {
	g := newRig(t)
	var seen sync.Map // CARMA_TASK -> *model.Launch
	g.engine.AddImage("looks", containerstest.Image{Run: func(_ context.Context, p *containerstest.Process) int {
		for _, kv := range p.Spec.Env {
			if id, ok := strings.CutPrefix(kv, "CARMA_TASK="); ok {
				seen.Store(id, storedLaunch(t, g.dir, id))
			}
		}
		return 0
	}})
	for range 20 {
		id := g.run(api.Submit{Image: "looks", Mem: int64(units.GiB)})
		g.finished(id)
		if l, ok := seen.Load(id); !ok || l.(int) != 1 {
			t.Fatalf("task %s ran with %v launches in the journal", id, l)
		}
	}
}

// storedLaunch counts the stored launches of a task.
func storedLaunch(t *testing.T, dir, id string) int {
	j, err := journal.OpenReadOnly(dir)
	if err != nil {
		t.Error(err)
		return 0
	}
	defer j.Close()
	last, err := j.Decided()
	if err != nil {
		t.Error(err)
	}
	n := 0
	for d, err := range j.Decisions(0) {
		if err != nil {
			t.Error(err)
			return 0
		}
		decision, err := model.DecodeDecision(d.Kind, d.Body)
		if err != nil {
			t.Error(err)
			return 0
		}
		if l, ok := decision.(model.Launch); ok && l.Task.String() == id && d.Seq <= last {
			n++
		}
	}
	return n
}
