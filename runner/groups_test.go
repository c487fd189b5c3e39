package runner

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"carma/containers/containerstest"
	"carma/internal/units"
	"carma/runner/api"
)

// TestGroupIsStoppedFromItsEnd checks that the last tasks of a group are stopped first.
// Otherwise the next task would get the place of a stopped one, and would be stopped right
// after its start.
func TestGroupIsStoppedFromItsEnd(t *testing.T) {
	g := newRig(t)
	g.script("long", untilStopped)
	for range 2 {
		g.running(g.run(api.Submit{Image: "long", Mem: int64(20 * units.GiB)}))
	}
	g.submitAll(api.Submission{Group: "lot", Tasks: []api.Submit{
		{Image: "long", Mem: int64(30 * units.GiB), Parallel: 1}, {Image: "long", Mem: 1 << 30, Parallel: 1},
		{Image: "long", Part: "then", Mem: 1 << 30, After: []api.Dependency{{Task: "1"}}},
	}})
	g.until("lot-1", "queued", func(t api.Task) bool { return t.Phase == "queued" })
	if _, err := g.api.StopGroup(g.ctx(), "lot", api.StopRequest{Reason: "enough"}); err != nil {
		t.Fatal(err)
	}
	for _, task := range g.groupEnd("lot") {
		if task.Phase != "cancelled" || task.Reason != "enough" || len(task.Attempts) > 0 {
			t.Errorf("task %s %s (%s) after %d attempts", task.Name, task.Phase, task.Reason, len(task.Attempts))
		}
	}
}

// TestPartsHaveTheirLimits checks that each part of a group has its own limit.
func TestPartsHaveTheirLimits(t *testing.T) {
	g := newRig(t)
	g.script("long", untilStopped)
	part := func(name string) api.Submit {
		return api.Submit{Image: "long", Part: name, Mem: 1 << 30, Parallel: 1}
	}
	g.submitAll(api.Submission{Group: "lot", Tasks: []api.Submit{part("a"), part("a"), part("b"), part("b")}})
	g.running("lot-a-1")
	g.running("lot-b-1")
	for _, name := range []string{"lot-a-2", "lot-b-2"} {
		if task, err := g.api.Task(g.ctx(), name); err != nil || task.Phase != "held" || !strings.Contains(task.Waits, "group lot/"+name[4:5]) {
			t.Errorf("%s: %+v, %v", name, task, err)
		}
	}
}

// TestProbeWaitsForDependencies: a task is probed only when its dependencies are met: its
// program may read what the other tasks write.
func TestProbeWaitsForDependencies(t *testing.T) {
	g := newRig(t, withProbes)
	g.script("long", untilStopped)
	var probes atomic.Int32
	counted := func(batch int) containerstest.Script {
		run := trains(batch)
		return func(ctx context.Context, p *containerstest.Process) int {
			if mark(p) != "" {
				probes.Add(1)
			}
			return run(ctx, p)
		}
	}
	g.script("train", counted(3))
	first := g.run(api.Submit{Image: "long", Mem: 1 << 30})
	g.running(first)
	second := g.run(api.Submit{Image: "train", Probe: true, After: []api.Dependency{{Task: first, Condition: "any"}}})
	third := g.run(api.Submit{Image: "train", Command: []string{"other"}, Probe: true})
	g.running(third)
	if task, err := g.api.Task(g.ctx(), second); err != nil || task.Phase != "estimating" || task.Waits != "it waits for task 1 to end" || probes.Load() != 1 {
		t.Errorf("%d probes ran; the task that waits: %+v, %v", probes.Load(), task, err)
	}
	if _, err := g.api.Stop(g.ctx(), first, api.StopRequest{}); err != nil {
		t.Fatal(err)
	}
	if task := g.running(second); task.Need != int64(3*units.GiB) || probes.Load() != 2 {
		t.Errorf("it runs with %d booked after %d probes", task.Need, probes.Load())
	}
}

// TestGroupPages checks that a group is listed page by page, and that only the newest group of
// a name is listed.
func TestGroupPages(t *testing.T) {
	long(t)
	g := newRig(t)
	g.script("ok", printing(0))
	const n = 2300
	older := api.Submission{Group: "lot", Tasks: []api.Submit{{Image: "ok", Mem: int64(units.GiB)}, {Image: "ok", Mem: int64(units.GiB)}}}
	g.submitAll(older)
	g.groupEnd("lot")
	s := api.Submission{Group: "lot"}
	for range n {
		s.Tasks = append(s.Tasks, api.Submit{Image: "ok", Mem: int64(units.GiB), Delay: 1 << 50})
	}
	g.submitAll(s)
	for after, want := range map[int64]int{0: 1000, 1002: 1000, 2002: 300, 2302: 0, 5000: 0} {
		list, next, err := g.query.Group(g.ctx(), "lot", api.ListOptions{After: after})
		if err != nil || len(list) != want || (next == 0) != (want < 1000) {
			t.Errorf("after %d: %d tasks, next %d, %v; want %d", after, len(list), next, err, want)
		}
	}
	list, err := g.api.Group(g.ctx(), "lot")
	if err != nil || len(list) != n {
		t.Fatalf("%d tasks, %v", len(list), err)
	}
	for i, task := range list {
		if task.ID != int64(3+i) {
			t.Fatalf("task %d at place %d", task.ID, i)
		}
	}
	if _, err := g.control.StopGroup(g.ctx(), ann, "lot", api.StopRequest{}); err == nil {
		t.Error("another user stopped it")
	}
	stopped, err := g.api.StopGroup(t.Context(), "lot", api.StopRequest{})
	if err != nil || len(stopped.Tasks) != n {
		t.Errorf("%d were stopped, %v", len(stopped.Tasks), err)
	}
}
