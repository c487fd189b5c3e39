package mapper

import (
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/ledger"
	"carma/mapper/model"
)

// after makes a task follow another.
func after(id model.TaskID, c model.Condition) func(*model.Request) {
	return func(r *model.Request) { r.After = append(r.After, model.Dependency{Task: id, Condition: c}) }
}

// limited puts a task in a group with a limit.
func limited(group string, parallel int) func(*model.Request) {
	return func(r *model.Request) { r.Group, r.Parallel = group, parallel }
}

func TestConditions(t *testing.T) {
	for _, c := range []struct {
		condition model.Condition
		how       model.Class
		start     bool // whether it had started
		runs      bool
		reason    string
	}{
		{model.AfterOK, model.ExitOK, true, true, ""},
		{model.AfterOK, model.ExitProgram, true, false, "after-failed task=1 condition=ok"},
		{model.AfterAny, model.ExitProgram, true, true, ""},
		{model.AfterStarted, model.ExitOK, true, true, ""},
		{model.AfterStarted, model.ExitProgram, true, true, ""},
		{model.AfterStarted, model.ExitCannotStart, false, false, "after-failed task=1 condition=started"},
		{model.AfterOK, model.ExitStopped, true, false, "after-cancelled task=1 condition=ok"},
		{model.AfterAny, model.ExitStopped, true, true, ""},
	} {
		w := newWorld(t, plain(), 2)
		first := w.submit(units.GiB, nil)
		then := w.submit(units.GiB, after(first, c.condition))
		if got := w.s.TaskByID(then).Phase; got != model.Held {
			t.Errorf("%+v: it is %s at first", c, got)
		}
		if c.start {
			w.started(first)
		}
		if c.how == model.ExitStopped {
			w.cancel(first)
		}
		w.exit(first, c.how)
		got := w.finished[then]
		if runs := len(w.launches) == 2; runs != c.runs || c.reason != "" && say(got.Reason) != c.reason || !c.runs && got.Phase != model.Cancelled {
			t.Errorf("%+v: launched %v, ended as %s: %s", c, runs, got.Phase, say(got.Reason))
		}
	}
}

// TestDiamond checks that a diamond of dependencies runs in order, and that the last task waits
// for both branches.
func TestDiamond(t *testing.T) {
	w := newWorld(t, plain(), 4)
	top := w.submit(units.GiB, nil)
	left, right := w.submit(units.GiB, after(top, model.AfterOK)), w.submit(units.GiB, after(top, model.AfterOK))
	join := w.submit(units.GiB, func(r *model.Request) { after(left, model.AfterOK)(r); after(right, model.AfterOK)(r) })
	for _, id := range []model.TaskID{top, left, right, join} {
		if n := len(w.launches); w.launches[n-1].Task < id {
			t.Fatalf("task %d is not placed; launched: %+v", id, w.launches)
		}
		w.started(id)
		if why, ok := w.s.Why(join); id == left && (!ok || why.Rule != model.RuleAfter || sayWhy(why) != "after task=2 condition=ok more=1") {
			t.Errorf("the join says %+v", why)
		}
		w.exit(id, model.ExitOK)
	}
	if len(w.finished) != 4 {
		t.Errorf("finished are %+v", w.finished)
	}
}

// TestCascade checks that a failure ends all dependent tasks in a chain of any length, and no
// other tasks.
func TestCascade(t *testing.T) {
	w := newWorld(t, plain(), 1)
	first := w.submit(units.GiB, nil)
	last := first
	for range 1000 {
		last = w.submit(units.GiB, after(last, model.AfterOK))
	}
	other := w.submit(units.GiB, after(first, model.AfterAny))
	w.started(first)
	w.exit(first, model.ExitProgram)
	if got := w.finished[last]; got.Phase != model.Cancelled || say(got.Reason) != "after-cancelled task=1000 condition=ok" {
		t.Errorf("the last of the chain: %s, %s", got.Phase, say(got.Reason))
	}
	if w.s.Unfinished() != 1 || w.s.TaskByID(other).Phase != model.Launching {
		t.Errorf("%d tasks are left", w.s.Unfinished())
	}
}

// TestDependencyRefused checks that an impossible dependency ends the task at once.
func TestDependencyRefused(t *testing.T) {
	w := newWorld(t, plain(), 1)
	gone := w.submit(units.GiB, nil)
	w.started(gone)
	w.exit(gone, model.ExitOK)
	for _, c := range []struct {
		dependency model.Dependency
		reason     model.ReasonCode
	}{
		{model.Dependency{Task: 2, Condition: model.AfterOK}, model.ReasonAfterLater},
		{model.Dependency{Task: 9, Condition: model.AfterAny}, model.ReasonAfterLater},
		{model.Dependency{Task: gone, Condition: model.AfterOK}, model.ReasonAfterForgotten},
		{model.Dependency{Task: gone, Condition: "soon"}, model.ReasonAfterUnknown},
		{model.Dependency{Task: gone, Condition: model.AfterAny}, ""},
	} {
		id := w.submit(units.GiB, after(c.dependency.Task, c.dependency.Condition))
		if got := w.finished[id]; got.Reason.Code != c.reason || (got.Phase == model.Cancelled) != (c.reason != "") {
			t.Errorf("%+v: %s, %s", c.dependency, got.Phase, say(got.Reason))
		}
	}
}

// TestDelay checks that a delay ends without an event, even with more timers than the state
// keeps.
func TestDelay(t *testing.T) {
	w := newWorld(t, plain(), 1)
	w.submit(40*units.GiB, nil)
	late := w.submit(units.GiB, func(r *model.Request) { r.Delay = time.Hour })
	if why, _ := w.s.Why(late); why.Rule != model.RuleDelay || sayWhy(why) != "delay span=1h0m0s" {
		t.Errorf("it says %+v", why)
	}
	for range 5000 {
		w.s.SetTimer(w.now.Add(time.Minute), ledger.Timer{})
	}
	w.started(1)
	w.exit(1, model.ExitOK)
	if got := w.wait(59 * time.Minute); len(got) > 0 {
		t.Fatalf("launched too early: %+v", got)
	}
	if got := w.wait(2 * time.Minute); len(got) != 1 || got[0].Task != late {
		t.Errorf("launched when the delay was over: %+v", got)
	}
}

// TestGroupLimit checks that tasks over the limit of their group delay no other task. With a
// look-ahead of one, a later task starts although a thousand of them wait, and each end admits
// one more, in order.
func TestGroupLimit(t *testing.T) {
	opt := plain()
	opt.LookAhead = 1
	w := newWorld(t, opt, 4)
	for range 1000 {
		w.submit(units.GiB, limited("array", 3))
	}
	if len(w.launches) != 3 || w.s.QueueLen() != 0 {
		t.Fatalf("%d launched and %d queued, the limit is 3", len(w.launches), w.s.QueueLen())
	}
	if why, _ := w.s.Why(1000); why.Rule != model.RuleGroup || sayWhy(why) != "group name=array count=3 limit=3" {
		t.Errorf("the last says %+v", why)
	}
	other := w.submit(units.GiB, nil)
	if w.s.TaskByID(other).Phase != model.Launching {
		t.Errorf("a task of nobody's is %s", w.s.TaskByID(other).Phase)
	}
	w.cancel(4) // held
	w.started(2)
	if got := w.exit(2, model.ExitProgram); len(got) != 1 || got[0].Task != 5 {
		t.Errorf("after an end: %+v, want task 5", got)
	}
}

// TestGroupKeepsPlace checks that a task that will run again keeps its place in the group.
func TestGroupKeepsPlace(t *testing.T) {
	w := newWorld(t, plain(), 1)
	first := w.submit(20*units.GiB, limited("array", 1))
	w.submit(units.GiB, limited("array", 1))
	w.started(first)
	if got := w.exit(first, model.ExitGPUOOM); len(got) != 1 || got[0].Task != first {
		t.Errorf("after a GPU OOM: %+v, want task %d again", got, first)
	}
}

// TestHeldTasksLearn checks that the memory observed for the first task of a kind also applies
// to tasks that are already held.
func TestHeldTasksLearn(t *testing.T) {
	opt := plain()
	opt.Learn = true
	w := newWorld(t, opt, 1)
	edit := func(r *model.Request) { r.Kind = "k"; limited("array", 1)(r) }
	first, second := w.submitEstimate(model.Estimate{WholeGPU: true}, edit), w.submitEstimate(model.Estimate{WholeGPU: true}, edit)
	w.started(first)
	w.step(model.Exited{At: w.now, Task: first, Attempt: 1, Class: model.ExitOK, Peak: 4 * units.GiB})
	if got := w.s.TaskByID(second); got.NextGrant == 0 || got.NextGrant > 5*units.GiB || got.NextExclusive {
		t.Errorf("the second books %s, alone %v; the first used 4 GiB", got.NextGrant, got.NextExclusive)
	}
}
