package runner

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"carma/containers"
	"carma/containers/containerstest"
	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/api"
)

// stubborn ignores its stop signal.
func stubborn(_ context.Context, p *containerstest.Process) int {
	<-p.Killed
	return 137
}

// asksToStop stops a task and returns when that is durable.
func (g *rig) asksToStop(ref string, s api.StopRequest) {
	g.t.Helper()
	if _, err := g.api.Stop(g.ctx(), ref, s); err != nil {
		g.t.Fatal(err)
	}
}

func (g *rig) stubborn() string {
	g.t.Helper()
	g.script("stubborn", stubborn)
	ref := g.run(api.Submit{Image: "stubborn", Mem: int64(units.GiB)})
	g.running(ref)
	return ref
}

// TestStoppingEnds: a task that ignores its stop signal ends soon after its grace, for any
// answer of the engine to stop signal and kill (finding F1).
func TestStoppingEnds(t *testing.T) {
	const grace, soon = 10 * time.Second, 5 * time.Second
	boom := errors.New("context deadline exceeded") // an engine's own
	for name, fault := range map[string]func(*containerstest.Fake){
		"none":         func(*containerstest.Fake) {},
		"signal fails": func(f *containerstest.Fake) { f.FailNext(containerstest.OpSignal, boom) },
		"kill fails": func(f *containerstest.Fake) {
			f.FailNext(containerstest.OpKill, boom)
			f.FailNext(containerstest.OpKill, context.DeadlineExceeded)
		},
		"kill has no effect": func(f *containerstest.Fake) { f.IgnoreNext(containerstest.OpKill) },
		"engine away":        func(f *containerstest.Fake) { f.FailNext(containerstest.OpKill, containers.ErrUnavailable) },
		"signal hangs":       func(f *containerstest.Fake) { f.HangNext(containerstest.OpSignal) },
		"answer is lost":     func(f *containerstest.Fake) { f.LoseNext(containerstest.OpKill) },
	} {
		t.Run(name, func(t *testing.T) {
			inVirtualTime(t, func(v *virtual) {
				ref := v.submit("stubborn")
				time.Sleep(time.Minute)
				fault(v.engine)
				before := time.Now()
				if _, err := v.control.Stop(v.ctx, rootUser, ref, api.StopRequest{Grace: grace}); err != nil {
					t.Fatal(err)
				}
				rec := v.finished(ref)
				if took := time.Since(before); took < grace || took > grace+soon {
					t.Errorf("the task ended after %s, its grace is %s", took, grace)
				}
				if rec.Task.Phase != model.Cancelled || rec.Task.Attempts[0].Class != model.ExitStopped {
					t.Errorf("the task is %s, its attempts %+v", rec.Task.Phase, rec.Task.Attempts)
				}
				if v.engine.Calls(containerstest.OpSignal) == 0 {
					t.Error("the task was never asked to end")
				}
			})
		})
	}
}

// TestSecondStop checks that a second stop can make the grace shorter, but never longer.
func TestSecondStop(t *testing.T) {
	for name, second := range map[string]api.StopRequest{
		"now": {Now: true}, "shorter": {Grace: 20 * time.Millisecond}, "default": {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newRig(t, func(g *rig) { g.opt.StopGrace = 50 * time.Millisecond })
			ref := g.stubborn()
			g.asksToStop(ref, api.StopRequest{Grace: time.Hour})
			g.until(ref, "stopping", func(t api.Task) bool { return t.Phase == "stopping" })
			g.asksToStop(ref, api.StopRequest{Grace: 2 * time.Hour})
			g.asksToStop(ref, second)
			g.asksToStop(ref, api.StopRequest{Grace: time.Hour})
			if task := g.finished(ref); task.Phase != "cancelled" {
				t.Errorf("the task is %s (%s)", task.Phase, task.Reason)
			}
		})
	}
}

// TestStopNow checks that a task that is stopping because of its time limit or its group is
// killed at once if a user requests that.
func TestStopNow(t *testing.T) {
	g := newRig(t, func(g *rig) { g.opt.StopGrace = time.Hour })
	g.script("stubborn", stubborn)
	late := g.run(api.Submit{Image: "stubborn", Mem: int64(units.GiB), TimeLimit: 10 * time.Millisecond})
	g.until(late, "stopping", func(t api.Task) bool { return t.Phase == "stopping" }) // and not "running" until its end
	g.asksToStop(late, api.StopRequest{Now: true})
	if task := g.finished(late); task.Phase != "failed" || !strings.Contains(task.Reason, "time limit") {
		t.Errorf("the task is %s (%s)", task.Phase, task.Reason)
	}
	all, err := g.api.SubmitAll(g.ctx(), api.Submission{Group: "lot", Tasks: []api.Submit{
		{Image: "stubborn", Mem: int64(units.GiB)}, {Image: "stubborn", Mem: int64(units.GiB)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, sub := range all.Tasks {
		g.running(sub.Name)
	}
	for _, now := range []bool{false, true} {
		if _, err := g.api.StopGroup(g.ctx(), "lot", api.StopRequest{Now: now}); err != nil {
			t.Fatal(err)
		}
	}
	for _, sub := range all.Tasks {
		g.finished(sub.Name)
	}
}

// TestStopIsDurable: the next daemon continues a stop, with the requested grace.
func TestStopIsDurable(t *testing.T) {
	g := newRig(t, func(g *rig) { g.opt.StopGrace = 20 * time.Millisecond })
	patient, hasty := g.stubborn(), g.stubborn()
	g.asksToStop(patient, api.StopRequest{Grace: time.Hour})
	g.opt.StopGrace = time.Hour
	g.restart()
	g.asksToStop(hasty, api.StopRequest{Grace: 200 * time.Millisecond})
	g.restart()
	if task := g.finished(hasty); task.Phase != "cancelled" {
		t.Errorf("the task is %s (%s)", task.Phase, task.Reason)
	}
	task, err := g.api.Task(g.ctx(), patient)
	if err != nil || task.Phase != "stopping" {
		t.Errorf("the task with an hour's grace is %s, %v", task.Phase, err)
	}
	g.asksToStop(patient, api.StopRequest{Now: true})
	g.finished(patient)
}

// TestRemovedBySomebodyElse: if somebody removes a container, the program is not at fault.
func TestRemovedBySomebodyElse(t *testing.T) {
	g := newRig(t)
	long := g.gated("long")
	ref := g.run(api.Submit{Image: "long", Mem: int64(units.GiB)})
	g.running(ref)
	if err := g.engine.Remove(t.Context(), g.containers()[0].ID); err != nil {
		t.Fatal(err)
	}
	close(long.gate)
	task := g.finished(ref)
	if first := task.Attempts[0]; task.Phase != "succeeded" || first.Outcome != "infrastructure" || !first.Blameless || !strings.Contains(first.Message, "removed by somebody else") {
		t.Errorf("the task is %s (%s) after %+v", task.Phase, task.Reason, task.Attempts)
	}
}

// TestWaitRefused checks that an engine that cannot report whether a container has ended is
// asked again, and that the task counts as running until then.
func TestWaitRefused(t *testing.T) {
	g := newRig(t)
	long := g.gated("long")
	g.engine.FailNext(containerstest.OpWait, errors.New("no space left on device"))
	ref := g.run(api.Submit{Image: "long", Mem: int64(units.GiB)})
	g.running(ref)
	g.eventually("it is asked again", func() bool { return g.engine.Calls(containerstest.OpWait) > 1 })
	close(long.gate)
	if task := g.finished(ref); task.Phase != "succeeded" || len(task.Attempts) != 1 || long.starts.Load() != 1 {
		t.Errorf("the task is %s after %+v and %d starts", task.Phase, task.Attempts, long.starts.Load())
	}
}
