package breaker

import (
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/ledger"
	"carma/mapper/model"
)

// begin returns breakers of a ledger with waiting tasks, each of another user.
func begin(n int) (*Breakers, []*model.Task) {
	l := ledger.New(model.Options{Backoff: time.Minute}, false)
	l.Begin(units.Instant(time.Hour))
	var tasks []*model.Task
	for i := range n {
		t := &model.Task{Request: model.Request{ID: model.TaskID(i + 1), User: string(rune('a' + i)), Namespace: "ns"}, Phase: model.Queued}
		l.AddTask(t)
		tasks = append(tasks, t)
	}
	return New(l), tasks
}

// fail reports a failed start of a task.
func (b *Breakers) fail(t *model.Task, scope model.BreakerScope) {
	t.StartFailures++
	b.StartFailed(t, &model.Attempt{N: 1}, model.Fault{Scope: scope, Cause: "no space left on device"})
}

// TestEngineBreaker checks that failed starts of three tasks pause the engine, that a probe is
// allowed later, and that a start closes the breaker and counts as a failed start of each task
// that could not start.
func TestEngineBreaker(t *testing.T) {
	b, tasks := begin(4)
	for i, task := range tasks[:3] {
		if b.IsEnginePaused() {
			t.Fatalf("paused after %d failed starts", i)
		}
		b.fail(task, model.ScopeEngine)
	}
	if !b.IsEnginePaused() || !b.IsEngineOpen() || b.EngineReason().Text != "no space left on device" || len(b.Breakers()) != 1 {
		t.Fatalf("after three failed starts paused %v, open %v: %+v", b.IsEnginePaused(), b.IsEngineOpen(), b.Breakers())
	}
	b.Begin(b.Now().Add(b.NextProbe()))
	if b.IsEngineOpen() {
		t.Error("no probe may be launched when it is due")
	}
	b.SelectProbes(otherUsers)
	if b.MayLaunch(tasks[0]) || !b.MayLaunch(tasks[3]) {
		t.Error("the first probe is not of a user whose tasks have not failed")
	}
	b.SelectProbes(AllTasks)
	b.Launched(tasks[3], nil)
	if !b.IsEngineOpen() {
		t.Error("a second probe may be launched beside the first")
	}
	b.StartSucceeded(tasks[3], &model.Attempt{N: 1})
	if b.IsEnginePaused() || tasks[0].StartFailuresWhileOthersStart != 1 || tasks[3].StartFailuresWhileOthersStart != 0 {
		t.Errorf("after a start paused %v; failures counted: %d, %d", b.IsEnginePaused(), tasks[0].StartFailuresWhileOthersStart, tasks[3].StartFailuresWhileOthersStart)
	}
}

// TestCanary checks that a start that failed for an unknown reason asks for a canary, whose
// outcome decides whether the task or the engine is at fault.
func TestCanary(t *testing.T) {
	for _, row := range []struct {
		outcome model.CanaryOutcome
		task    int // failed starts counted against the task
		engine  bool
	}{{model.CanaryStarted, 1, false}, {model.CanaryFailed, 0, true}, {model.CanaryMissing, 1, false}} {
		b, tasks := begin(1)
		b.fail(tasks[0], model.ScopeUnknown)
		if !b.CanaryDue() || b.IsEnginePaused() {
			t.Fatalf("due: %v, paused: %v", b.CanaryDue(), b.IsEnginePaused())
		}
		b.CanaryEnded(model.CanaryEnded{Outcome: row.outcome, Fault: &model.Fault{Cause: "the engine is full"}})
		if tasks[0].StartFailuresWhileOthersStart != row.task || b.IsEnginePaused() != row.engine || b.CanaryDue() {
			t.Errorf("canary %s: %d failures counted, paused %v, due again %v", row.outcome, tasks[0].StartFailuresWhileOthersStart, b.IsEnginePaused(), b.CanaryDue())
		}
	}
}

// TestTwoUsers checks that failed starts of two users' tasks for an unknown reason count
// against the engine without a canary, and failed starts of one user's tasks do not.
func TestTwoUsers(t *testing.T) {
	b, tasks := begin(3)
	tasks[1].User = tasks[0].User
	for _, task := range tasks[:2] {
		if b.fail(task, model.ScopeUnknown); b.Save().Sick != nil {
			t.Fatal("the engine is at fault because of one user")
		}
	}
	if b.fail(tasks[2], model.ScopeUnknown); b.Save().Sick == nil || !b.IsEnginePaused() {
		t.Errorf("after failed starts of two users: %+v", b.Save())
	}
}

// TestNamespace checks that after a refusal only the tasks of its namespace wait, and that a
// section of a snapshot restores it.
func TestNamespace(t *testing.T) {
	b, tasks := begin(2)
	tasks[1].Namespace = "other"
	b.fail(tasks[0], model.ScopeNamespace)
	if !b.IsNamespaceFull(tasks[0]) || b.IsNamespaceFull(tasks[1]) || b.IsEnginePaused() {
		t.Errorf("full: %v, the other one %v, engine paused %v", b.IsNamespaceFull(tasks[0]), b.IsNamespaceFull(tasks[1]), b.IsEnginePaused())
	}
	c := New(b.Ledger)
	if err := c.Restore(b.Save()); err != nil || c.Namespace("ns") == nil {
		t.Errorf("restored: %+v, %v", c.Save(), err)
	}
	bad := b.Save()
	bad.Full = append(bad.Full, bad.Full[0])
	if err := c.Restore(bad); err == nil {
		t.Error("a namespace that is there twice was restored")
	}
	b.Begin(b.Now().Add(FullTest))
	b.Launched(tasks[0], nil)
	b.StartSucceeded(tasks[0], &model.Attempt{N: 1})
	if b.IsNamespaceFull(tasks[0]) || len(b.Save().Full) != 0 {
		t.Errorf("after a start there: %+v", b.Save().Full)
	}
}
