package runner

import (
	"context"
	"slices"
	"testing"
	"time"

	"carma/containers/containerstest"
	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/gpu"
)

// lateCards are cards of another machine with delayed samples.
type lateCards struct {
	*cards
	late func(uuids []string, end time.Time)
}

func (c *lateCards) CatchUp(_ context.Context, uuids []string, end time.Time) { c.late(uuids, end) }

// TestCatchUp checks that, when a task runs out of GPU memory and samples are late, the daemon
// waits until samples show which task took the memory. The victim is not at fault, and the task
// that exceeded its grant gets a larger grant.
func TestCatchUp(t *testing.T) {
	c := &lateCards{}
	g := newRig(t, byMemory, func(g *rig) {
		g.cards = newCards(1, 40*units.GiB)
		c.cards = g.cards
		g.source = func(*cards) gpu.Source { return c }
	})
	g.script("over", untilStopped)
	grown, runs := make(chan struct{}), 0
	g.script("victim", func(ctx context.Context, p *containerstest.Process) int {
		if runs++; runs > 1 {
			return 0
		}
		<-grown
		p.Err("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB")
		return 1
	})
	over := g.run(api.Submit{Image: "over", Mem: int64(10 * units.GiB)})
	victim := g.run(api.Submit{Image: "victim", Mem: int64(20 * units.GiB)})
	first, _ := g.running(over), g.running(victim)
	c.late = func(uuids []string, end time.Time) {
		if !slices.Equal(uuids, []string{"GPU-a"}) || end.IsZero() {
			t.Errorf("samples of %v after %v", uuids, end)
		}
		g.cards.set(gpu.Sample{UUID: "GPU-a", Used: 30 * units.GiB, Processes: []gpu.Process{{Task: model.TaskID(first.ID), Attempt: 1, Used: 30 * units.GiB}}})
	}
	close(grown)
	g.until(victim, "run out of memory", func(t api.Task) bool { return len(t.Attempts) > 0 && t.Attempts[0].Outcome == "gpu-oom" })
	if _, err := g.api.Stop(g.ctx(), over, api.StopRequest{}); err != nil {
		t.Fatal(err)
	}
	got := g.finished(victim)
	if got.Phase != "succeeded" || len(got.Attempts) != 2 || !got.Attempts[0].Blameless || got.Attempts[1].Grant != int64(20*units.GiB) {
		t.Errorf("the victim: %s %+v", got.Phase, got.Attempts)
	}
	if task := g.finished(over); task.Attempts[0].Grant < int64(30*units.GiB) {
		t.Errorf("the overuser: %+v", task.Attempts)
	}
}
