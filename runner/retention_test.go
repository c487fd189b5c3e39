package runner

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"carma/containers/containerstest"
	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/request"
	"carma/runner/retention"
	"carma/runner/verify"
)

// done submits n tasks as who, one after the other, and waits for each.
func (g *rig) done(who request.Caller, n int) (refs []string) {
	g.t.Helper()
	for range n {
		ref := g.runAs(who, api.Submit{Image: "one", Mem: int64(units.GiB)})
		g.finished(ref)
		refs = append(refs, ref)
	}
	return refs
}

// keeping returns a daemon with two images: "one" ends, "long" does not.
func keeping(t *testing.T) *rig {
	g := newRig(t)
	g.engine.AddImage("one", containerstest.Image{Run: printing(0, "x")})
	g.engine.AddImage("long", containerstest.Image{Run: untilStopped})
	return g
}

// keep restarts the daemon, which removes old tasks at its start. It waits
// until exactly the tasks of gone are removed, with their output. Then the
// journal must be sound.
func (g *rig) keep(k retention.Keep, gone, stay []string) {
	g.t.Helper()
	g.opt.Keep = k
	g.restart()
	there := func(ref string) bool { _, err := g.api.Task(g.ctx(), ref); return err == nil }
	for _, ref := range gone {
		g.eventually("task "+ref+" has gone", func() bool { return !there(ref) })
	}
	g.eventually("their output has gone", func() bool {
		ids, err := g.Logs.Tasks()
		return err == nil && len(ids) == len(stay)
	})
	if n, err := g.retention.RemoveSome(g.ctx()); n != 0 || err != nil {
		g.t.Errorf("%d more are removed, %v", n, err)
	}
	for _, ref := range stay {
		if !there(ref) {
			g.t.Errorf("task %s has gone", ref)
		}
	}
	v, err := verify.Journal(g.dir, "test")
	last := 0 // no number is missing
	for _, ref := range slices.Concat(gone, stay) {
		n, _ := strconv.Atoi(ref)
		last = max(last, n)
	}
	if err != nil || len(v.Faults) > 0 || v.Differs != "" || v.Submitted != last {
		g.t.Errorf("verify: %+v, %v, want %d submitted", v, err, last)
	}
}

// TestRetention: finished tasks beyond keep-tasks are removed, the oldest
// first.
func TestRetention(t *testing.T) {
	long(t)
	g := keeping(t)
	refs := g.done(ann, 6)
	long := g.run(api.Submit{Image: "long"})
	g.running(long)
	g.keep(retention.Keep{Tasks: 3}, refs[:3], append(refs[3:], long))
	if got := g.output(refs[5]); len(got) != 1 {
		t.Errorf("output %q", got)
	}
	if task, err := g.api.Task(g.ctx(), long); err != nil || task.Phase != "running" {
		t.Errorf("the unfinished task is %v, %v", task.Phase, err)
	}
	info, err := g.api.Info(g.ctx())
	if err != nil || info.Output == nil || info.Output.Finished != 3 {
		t.Errorf("info %+v, %v", info.Output, err)
	}
	g.keep(retention.Keep{}, nil, append(refs[3:], long)) // removed tasks stay removed
}

// TestRetentionByAge: all tasks that ended long enough ago are removed, for any number of
// tasks of a user.
func TestRetentionByAge(t *testing.T) {
	long(t)
	g := keeping(t)
	refs := slices.Concat(g.done(ann, 2), g.done(bob, 2))
	g.keep(retention.Keep{TasksFor: time.Hour}, nil, refs)
	g.keep(retention.Keep{TasksFor: time.Nanosecond}, refs, nil)
}

// TestRetentionIsFair: the user with most tasks loses some, down to the number
// that the others have.
func TestRetentionIsFair(t *testing.T) {
	long(t)
	g := keeping(t)
	anns, bobs := g.done(ann, 2), g.done(bob, 5)
	stay := append(anns[1:], bobs[3:]...) // among users with equal numbers, the first by name loses tasks
	g.keep(retention.Keep{Tasks: 3}, append(anns[:1], bobs[:3]...), stay)
}

// TestRetentionSparesNeeded: a task stays while an unfinished task depends on it.
func TestRetentionSparesNeeded(t *testing.T) {
	long(t)
	g := keeping(t)
	first := g.gated("gated")
	needed := g.runAs(ann, api.Submit{Image: "gated", Mem: int64(units.GiB)})
	next := g.runAs(ann, api.Submit{Image: "long", Mem: int64(units.GiB), After: []api.Dependency{{Task: needed}}})
	close(first.gate)
	g.running(next)
	refs := g.done(ann, 2)
	g.keep(retention.Keep{Tasks: 1}, refs, []string{needed, next})
	if _, err := g.api.Stop(g.ctx(), next, api.StopRequest{}); err != nil {
		t.Fatal(err)
	}
	g.finished(next)
	g.keep(retention.Keep{Tasks: 1}, append(refs, needed), []string{next})
}

// TestRetentionSparesOpenGroups: finished tasks of a group with unfinished ones
// stay. Later tasks are removed instead.
func TestRetentionSparesOpenGroups(t *testing.T) {
	long(t)
	g := keeping(t)
	tasks := make([]api.Submit, 7)
	for i := range tasks {
		tasks[i] = api.Submit{Image: "one", Mem: int64(units.GiB)}
	}
	tasks[6].Image = "long"
	all, err := g.admission.SubmitAll(g.ctx(), ann, api.Submission{Group: "lot", Tasks: tasks})
	if err != nil {
		t.Fatal(err)
	}
	var group []string
	for _, task := range all.Tasks {
		group = append(group, model.TaskID(task.ID).String())
	}
	for _, ref := range group[:6] {
		g.finished(ref)
	}
	g.running(group[6])
	refs := g.done(ann, 2)
	g.keep(retention.Keep{Tasks: 7}, refs[:1], append(group, refs[1]))
	g.keep(retention.Keep{Tasks: 1}, refs[1:], group)
	if _, err := g.api.Stop(g.ctx(), group[6], api.StopRequest{}); err != nil {
		t.Fatal(err)
	}
	g.finished(group[6])
	g.keep(retention.Keep{Tasks: 1}, append(refs, group[:6]...), group[6:])
}
