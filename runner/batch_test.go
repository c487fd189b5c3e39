package runner

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"carma/containers/containerstest"
	"carma/internal/units"
	"carma/mapper"
	"carma/runner/api"
	"carma/runner/verify"
)

// tally counts the runs of programs, by the value of an environment variable.
type tally struct {
	mu   sync.Mutex
	runs map[string]int
	now  int
	most int
}

// getenv returns a variable of a container's environment. The last value counts.
func getenv(p *containerstest.Process, name string) string {
	for _, kv := range slices.Backward(p.Spec.Env) {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

func (y *tally) script(variable string) containerstest.Script {
	return func(_ context.Context, p *containerstest.Process) int {
		y.mu.Lock()
		y.runs[getenv(p, variable)]++
		y.now++
		y.most = max(y.most, y.now)
		y.mu.Unlock()
		defer func() {
			y.mu.Lock()
			y.now--
			y.mu.Unlock()
		}()
		return 0
	}
}

func (g *rig) submitAll(s api.Submission) api.SubmittedAll {
	g.t.Helper()
	all, err := g.api.SubmitAll(g.ctx(), s)
	if err != nil {
		g.t.Fatal(err)
	}
	return all
}

func array(n, parallel int, task api.Submit) []api.Submit {
	all := make([]api.Submit, n)
	for i := range all {
		all[i] = task
		all[i].Parallel = parallel
		all[i].Array = &api.ArrayElement{Index: i + 1, Count: n, Min: 1, Max: n}
	}
	return all
}

// groupEnd waits until all tasks of a group have ended.
func (g *rig) groupEnd(name string) []api.Task {
	g.t.Helper()
	var all []api.Task
	g.eventually("group "+name+" has ended", func() (over bool) {
		var err error
		if all, err = g.api.Group(g.ctx(), name); err != nil {
			g.t.Fatal(err)
		}
		return !slices.ContainsFunc(all, func(t api.Task) bool { return !t.Finished() })
	})
	return all
}

// TestArrayOfThousand runs an array of 1,000 tasks, eight at a time, then a diamond of
// dependent tasks, with a restart of the daemon in between. Every task must run once and in
// order.
func TestArrayOfThousand(t *testing.T) {
	long(t)
	g := newRig(t, func(g *rig) { g.opt.Mapper = mapper.DefaultsOf("magm"); g.opt.Mapper.WarmUp = 0 })
	y := &tally{runs: map[string]int{}}
	g.script("one", y.script("CARMA_ARRAY_INDEX"))
	var order []string
	g.script("step", func(_ context.Context, p *containerstest.Process) int {
		y.mu.Lock()
		defer y.mu.Unlock()
		order = append(order, getenv(p, "STEP"))
		if len(y.runs) != 1000 {
			order = append(order, "before the array")
		}
		return 0
	})
	all := g.submitAll(api.Submission{Group: "big", Tasks: array(1000, 8, api.Submit{Image: "one", Mem: int64(units.GiB)})})
	if all.Tasks[999].ID != all.Tasks[0].ID+999 || all.Tasks[999].Name != "big-1000" {
		t.Fatalf("the last task is %+v, the first %+v", all.Tasks[999], all.Tasks[0])
	}
	step := func(name string, after ...api.Dependency) api.Submit {
		return api.Submit{Image: "step", Part: name, Mem: int64(units.GiB), Env: []string{"STEP=" + name}, After: after}
	}
	g.submitAll(api.Submission{Group: "diamond", Tasks: []api.Submit{
		step("top", api.Dependency{Task: "big"}), step("left", api.Dependency{Part: "top"}), step("right", api.Dependency{Part: "top"}),
		step("join", api.Dependency{Part: "left"}, api.Dependency{Part: "right", Condition: "any"}),
	}})
	for _, n := range []int{100, 500} {
		g.eventually(fmt.Sprintf("%d have run", n), func() bool { y.mu.Lock(); defer y.mu.Unlock(); return len(y.runs) >= n })
		g.restart()
	}
	for _, task := range append(g.groupEnd("big"), g.groupEnd("diamond")...) {
		if task.Phase != "succeeded" || len(task.Attempts) != 1 {
			t.Fatalf("task %s %s after %d attempts: %s", task.Name, task.Phase, len(task.Attempts), task.Reason)
		}
	}
	for i := range 1000 {
		if n := y.runs[strconv.Itoa(i+1)]; n != 1 {
			t.Errorf("element %d ran %d times", i+1, n)
		}
	}
	if y.most > 8 {
		t.Errorf("%d ran at a time, the limit is 8", y.most)
	}
	slices.Sort(order[1:3])
	if !slices.Equal(order, []string{"top", "left", "right", "join"}) {
		t.Errorf("the diamond ran as %v", order)
	}
	g.stop()
	v, err := verify.Journal(g.dir, "test")
	if err != nil || len(v.Faults) > 0 || v.Launches != 1004 || v.Succeeded != 1004 {
		t.Errorf("the journal: %+v, %v", v, err)
	}
}

// TestSubmissionIsAtomic checks that either all tasks of a submission are accepted, or none.
func TestSubmissionIsAtomic(t *testing.T) {
	g := newRig(t)
	g.script("step", printing(0))
	ok := api.Submit{Image: "step", Part: "a", Mem: int64(units.GiB)}
	first := g.run(api.Submit{Image: "step", Name: "taken", Mem: int64(units.GiB), Delay: 1 << 50})
	edit := func(f func(*api.Submit)) api.Submit { s := ok; s.Part = "b"; f(&s); return s }
	for _, c := range []struct {
		group string
		task  api.Submit
		says  string
	}{
		{"", edit(func(s *api.Submit) { s.Image = "none" }), "b: unknown image none"},
		{"", edit(func(s *api.Submit) { s.Mem = int64(99 * units.GiB) }), "--mem: 99.0 GiB"},
		{"", edit(func(s *api.Submit) { s.After = []api.Dependency{{Task: "nobody"}} }), "--after: no task and no group nobody"},
		{"", edit(func(s *api.Submit) { s.After = []api.Dependency{{Part: "c"}} }), "no part c comes before"},
		{"", edit(func(s *api.Submit) { s.After = []api.Dependency{{Part: "b"}} }), "no part b comes before"},
		{"", edit(func(s *api.Submit) { s.Name = "taken" }), "task 1 is called taken already"},
		{"taken", edit(func(*api.Submit) {}), "--group: task 1 is called taken already"},
		{"17", edit(func(*api.Submit) {}), "a name must not be a number"},
	} {
		_, err := g.api.SubmitAll(g.ctx(), api.Submission{Group: c.group, Tasks: []api.Submit{ok, c.task}})
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("got %v, want %q", err, c.says)
		}
	}
	only := edit(func(s *api.Submit) { s.ShmSize = 1 << 60 })
	if _, err := g.api.SubmitAll(g.ctx(), api.Submission{Tasks: []api.Submit{only}}); err == nil || !strings.Contains(err.Error(), "b: --shm-size") {
		t.Errorf("the only service of a file: %v", err)
	}
	if all, err := g.api.Tasks(g.ctx(), api.ListOptions{All: true}); err != nil || len(all) != 1 {
		t.Errorf("%d tasks are there, only the first should be: %v", len(all), err)
	}
	all := g.submitAll(api.Submission{Tasks: []api.Submit{ok, edit(func(*api.Submit) {})}})
	if all.Group != "step-2" || all.Tasks[0].Name != "step-2-a" || all.Tasks[1].ID != 3 {
		t.Errorf("submitted %+v", all)
	}
	g.groupEnd("step-2")
	if _, err := g.api.Stop(g.ctx(), first, api.StopRequest{}); err != nil {
		t.Fatal(err)
	}
}

// TestGroup checks that a group is listed and stopped as a whole. None of its tasks starts
// during the stop, and its name is free afterwards.
func TestGroup(t *testing.T) {
	g := newRig(t)
	y := &tally{runs: map[string]int{}}
	count := y.script("CARMA_ARRAY_INDEX")
	g.script("long", func(ctx context.Context, p *containerstest.Process) int {
		count(ctx, p)
		return untilStopped(ctx, p)
	})
	tasks := array(20, 2, api.Submit{Image: "long", Mem: int64(units.GiB)})
	g.submitAll(api.Submission{Group: "lot", Tasks: tasks})
	g.running("lot-1")
	g.running("lot-2")
	if list, err := g.api.Tasks(g.ctx(), api.ListOptions{Group: "lot"}); err != nil || len(list) != 20 || list[0].Phase != "held" || !strings.Contains(list[0].Waits, "2 tasks of group lot") {
		t.Errorf("listed %d: %+v, %v", len(list), list, err)
	}
	if why, err := g.api.Why(g.ctx(), "lot-3"); err != nil || !strings.Contains(why.Summary, "at most 2 at a time") {
		t.Errorf("why: %+v, %v", why, err)
	}
	if _, err := g.api.SubmitAll(g.ctx(), api.Submission{Group: "lot", Tasks: tasks}); err == nil || !strings.Contains(err.Error(), "a group is called lot already") {
		t.Errorf("a second group of the name: %v", err)
	}
	if _, err := g.api.Stop(g.ctx(), "lot", api.StopRequest{}); err == nil || !strings.Contains(err.Error(), "use --group lot") {
		t.Errorf("the group as a task: %v", err)
	}
	if info, err := g.api.Info(g.ctx()); err != nil || info.Held != 18 || info.Running != 2 || info.Queued != 0 {
		t.Errorf("info: %+v, %v", info, err)
	}
	stopped, err := g.api.StopGroup(g.ctx(), "lot", api.StopRequest{})
	if err != nil || len(stopped.Tasks) != 20 {
		t.Fatalf("stopped %+v, %v", stopped, err)
	}
	for _, task := range g.groupEnd("lot") {
		if task.Phase != "cancelled" || !strings.HasPrefix(task.Reason, "stopped by") {
			t.Errorf("task %s %s: %s", task.Name, task.Phase, task.Reason)
		}
	}
	if len(y.runs) != 2 {
		t.Errorf("%d tasks ran, two had started", len(y.runs))
	}
	g.script("long", printing(0))
	again := g.submitAll(api.Submission{Group: "lot", Tasks: tasks[:1]})
	if all := g.groupEnd("lot"); len(all) != 1 || all[0].ID != again.Tasks[0].ID {
		t.Errorf("the newest group of the name: %+v", all)
	}
	if _, err := g.api.Group(g.ctx(), "nobody"); err == nil || !strings.Contains(err.Error(), "no group nobody") {
		t.Errorf("an unknown group: %v", err)
	}
}

// TestAfterTheEnd checks that a task may depend on a task that has ended.
func TestAfterTheEnd(t *testing.T) {
	g := newRig(t)
	g.script("good", printing(0))
	g.script("bad", printing(3))
	good, bad := g.run(api.Submit{Image: "good", Mem: 1 << 30}), g.run(api.Submit{Image: "bad", Mem: 1 << 30})
	g.finished(good)
	g.finished(bad)
	after := func(ref, condition string) (api.Submitted, error) {
		return g.api.Submit(g.ctx(), api.Submit{Image: "good", Mem: 1 << 30, After: []api.Dependency{{Task: ref, Condition: condition}}})
	}
	for _, c := range []struct{ ref, condition, refused string }{
		{good, "", ""}, {bad, "any", ""}, {bad, "started", ""},
		{bad, "ok", "--after 2: task 2 has failed, so nothing would ever run; --after 2:any waits for its end only"},
		{"17", "", "no task and no group 17"},
	} {
		sub, err := after(c.ref, c.condition)
		if (err != nil) != (c.refused != "") || err != nil && !strings.Contains(err.Error(), c.refused) {
			t.Errorf("after %s:%s: %v", c.ref, c.condition, err)
		}
		if err == nil && g.finished(strconv.FormatInt(sub.ID, 10)).Phase != "succeeded" {
			t.Errorf("after %s:%s it did not run", c.ref, c.condition)
		}
	}
}

// TestCascade checks that tasks that depend on a failed task fail, with the reason.
func TestCascade(t *testing.T) {
	g := newRig(t)
	g.script("good", printing(0))
	g.script("bad", printing(3))
	g.submitAll(api.Submission{Group: "chain", Tasks: []api.Submit{
		{Image: "bad", Part: "a", Mem: 1 << 30}, {Image: "good", Part: "b", Mem: 1 << 30, After: []api.Dependency{{Part: "a"}}},
		{Image: "good", Part: "c", Mem: 1 << 30, After: []api.Dependency{{Part: "b"}}},
		{Image: "good", Part: "d", Mem: 1 << 30, After: []api.Dependency{{Part: "a", Condition: "any"}}},
	}})
	all := g.groupEnd("chain")
	for i, want := range []string{"failed", "cancelled", "cancelled", "succeeded"} {
		if all[i].Phase != want {
			t.Errorf("task %s %s (%s), want %s", all[i].Name, all[i].Phase, all[i].Reason, want)
		}
	}
	if why, err := g.api.Why(g.ctx(), "chain-c"); err != nil || why.Summary != "it was cancelled: task 2 was cancelled, and it was to run only after that had succeeded" {
		t.Errorf("why: %+v, %v", why, err)
	}
}
