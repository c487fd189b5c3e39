package lifecycle

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/breaker"
	"carma/mapper/explain"
	"carma/mapper/fairshare"
	"carma/mapper/learn"
	"carma/mapper/ledger"
	"carma/mapper/model"
	"carma/mapper/place"
	"carma/mapper/policy"
	"carma/mapper/predict"
	"carma/mapper/preempt"
	"carma/mapper/queue"
	"carma/mapper/reserve"
)

const hour = units.Instant(time.Hour)

// begin returns a lifecycle over a GPU of 40 GiB, at the first hour.
func begin(t *testing.T) *Lifecycle {
	t.Helper()
	opt := model.Options{Policy: "first-fit", LookAhead: 64, Ageing: time.Hour}
	first, err := policy.Named(opt.Policy)
	if err != nil {
		t.Fatal(err)
	}
	l := ledger.New(opt, first.IdleOnly)
	gpu := &model.GPU{GPUInfo: model.GPUInfo{ID: "a", Node: "n", Capacity: 40 * units.GiB}}
	if err := l.Restore(ledger.Snapshot{Now: hour, Options: opt, GPUs: []*model.GPU{gpu}}); err != nil {
		t.Fatal(err)
	}
	l.Begin(hour)
	us, pr, br := fairshare.New(l), predict.New(l), breaker.New(l)
	q := queue.New(l, us, pr)
	rs := reserve.New(l, pr, q)
	pl := place.New(l, pr, q, rs, first)
	pl.DropCache()
	pre := preempt.New(l, pr, q, rs, pl)
	return New(l, us, br, q, rs, pl, pre, learn.New(l, pr, q, pl, pre), explain.New(l, us, br, q, rs, pl))
}

// submit submits a task, with an estimate of 10 GiB.
func submit(lc *Lifecycle, r model.Request) *model.Task {
	r.GPUs, r.Priority, r.User = 1, model.Normal, "ada"
	lc.Submitted(model.TaskSubmitted{Request: r})
	lc.Estimated(model.Estimated{Task: r.ID, Estimate: model.Estimate{Memory: 10 * units.GiB}})
	return lc.TaskByID(r.ID)
}

// start lets a waiting task run.
func start(lc *Lifecycle, t *model.Task) {
	lc.Dequeue(t)
	t.Phase = model.Running
	t.Attempts = append(t.Attempts, model.Attempt{N: len(t.Attempts) + 1, Launched: lc.Now(), Started: lc.Now(), Grants: []model.Grant{{GPU: "a", Memory: units.GiB}}})
	lc.GPU("a").Add(model.Resident{Task: t.ID, Grant: units.GiB}, 0)
	lc.users.Enqueued(t)
	lc.users.Dequeued(t)
	lc.users.Occupy(t)
	lc.TaskStarted(t.ID)
}

// stopped lets the attempt of a task end, so that it is neither placed nor queued.
func stopped(lc *Lifecycle, t *model.Task) {
	lc.users.Release(t)
	lc.GPU("a").Remove(t.ID)
	t.Last().Ended = max(lc.Now(), 1)
}

// decided returns the decisions so far in short, and drops them.
func decided(lc *Lifecycle) (all []string) {
	for _, d := range lc.Decisions() {
		switch d := d.(type) {
		case model.Release:
			all = append(all, fmt.Sprintf("release %d", d.Task))
		case model.Stop:
			all = append(all, fmt.Sprintf("stop %d: %s", d.Task, d.Reason.Code))
		case model.Requeue:
			all = append(all, fmt.Sprintf("requeue %d: %s", d.Task, d.Phase))
		case model.Finish:
			all = append(all, fmt.Sprintf("%s %d: %s", d.Task.Phase, d.Task.ID, d.Task.Reason.Code))
		}
	}
	lc.ClearDecisions()
	return all
}

func want(t *testing.T, lc *Lifecycle, lines ...string) {
	t.Helper()
	if got := decided(lc); !slices.Equal(got, lines) {
		t.Errorf("decided %q, want %q", got, lines)
	}
}

func wantPhase(t *testing.T, task *model.Task, phase model.Phase) {
	t.Helper()
	if waits := phase == model.Queued || phase == model.Recovering; task.Phase != phase || task.Waiting() != waits {
		t.Errorf("task %d: %s, waits %v, want %s", task.ID, task.Phase, task.Waiting(), phase)
	}
}

// TestDependencies checks for each condition when a task is queued, and when it will never
// run.
func TestDependencies(t *testing.T) {
	for _, row := range []struct {
		condition model.Condition
		end       model.Phase
		starts    bool // it is queued when the other starts
		runs      bool // it is queued in the end
	}{
		{model.AfterOK, model.Succeeded, false, true},
		{model.AfterOK, model.Failed, false, false},
		{model.AfterAny, model.Failed, false, true},
		{model.AfterStarted, model.Failed, true, true},
	} {
		lc := begin(t)
		first := submit(lc, model.Request{ID: 1})
		second := submit(lc, model.Request{ID: 2, After: []model.Dependency{{Task: 1, Condition: row.condition}}})
		wantPhase(t, second, model.Held)
		start(lc, first)
		if queued := second.Phase == model.Queued; queued != row.starts {
			t.Errorf("%+v: queued at the start %v", row, queued)
		}
		stopped(lc, first)
		lc.Finish(first, row.end, 0, model.Reason{})
		lc.FollowUp()
		if row.runs {
			wantPhase(t, second, model.Queued)
		} else {
			wantPhase(t, second, model.Cancelled)
		}
	}
}

// TestFollowUpChains checks that the end of a task that never ran ends the tasks after it in
// the same step.
func TestFollowUpChains(t *testing.T) {
	lc := begin(t)
	submit(lc, model.Request{ID: 1})
	submit(lc, model.Request{ID: 2, After: []model.Dependency{{Task: 1, Condition: model.AfterOK}}})
	submit(lc, model.Request{ID: 3, After: []model.Dependency{{Task: 2, Condition: model.AfterOK}}})
	lc.Cancel(model.Cancel{Task: 1})
	lc.FollowUp()
	want(t, lc, "cancelled 1: "+string(model.ReasonAsked), "cancelled 2: "+string(model.ReasonAfterCancelled), "cancelled 3: "+string(model.ReasonAfterCancelled))
	lc.FollowUp()
	want(t, lc)
}

// TestGroup checks that no more tasks of a group are queued than its limit, and that the end
// of one admits the next.
func TestGroup(t *testing.T) {
	lc := begin(t)
	var all []*model.Task
	for id := range model.TaskID(3) {
		all = append(all, submit(lc, model.Request{ID: id + 1, Group: "g", Parallel: 1}))
	}
	wantPhase(t, all[0], model.Queued)
	wantPhase(t, all[1], model.Held)
	lc.Cancel(model.Cancel{Task: 1})
	lc.FollowUp()
	wantPhase(t, all[1], model.Queued)
	wantPhase(t, all[2], model.Held)
}

// TestHold checks that a held task leaves its queue and comes back into it, also when it is
// held after an attempt.
func TestHold(t *testing.T) {
	lc := begin(t)
	task := submit(lc, model.Request{ID: 1})
	decided(lc)
	lc.HoldChanged(model.HoldChanged{Task: 1, Hold: true, By: "ada"})
	wantPhase(t, task, model.Held)
	lc.HoldChanged(model.HoldChanged{Task: 1})
	wantPhase(t, task, model.Queued)
	want(t, lc, "release 1")

	start(lc, task)
	lc.HoldChanged(model.HoldChanged{Task: 1, Hold: true}) // a running task is not held
	wantPhase(t, task, model.Running)
	stopped(lc, task)
	lc.Requeue(task, model.Recovering, model.Reason{Code: model.ReasonStopped})
	lc.HoldAgain(task, &model.Hold{By: "ada"})
	wantPhase(t, task, model.Held)
	lc.HoldChanged(model.HoldChanged{Task: 1})
	wantPhase(t, task, model.Recovering)
	want(t, lc, "requeue 1: recovering", "release 1")
}

// TestCancel checks in each phase what a cancellation does.
func TestCancel(t *testing.T) {
	lc := begin(t)
	queued, running := submit(lc, model.Request{ID: 1}), submit(lc, model.Request{ID: 2})
	start(lc, running)
	lc.Cancel(model.Cancel{Task: 1, Failed: true})
	lc.Cancel(model.Cancel{Task: 2})
	want(t, lc, "failed 1: "+string(model.ReasonAsked), "stop 2: "+string(model.ReasonAsked))
	if lc.queue.QueueLen() != 0 || lc.TaskByID(1) != nil || queued.Waiting() {
		t.Error("the cancelled task still waits")
	}
	lc.Cancel(model.Cancel{Task: 2})
	want(t, lc)

	lc = begin(t)
	again := submit(lc, model.Request{ID: 1})
	start(lc, again)
	lc.RequeueRequested(model.RequeueRequested{Task: 1})
	want(t, lc, "stop 1: "+string(model.ReasonRecalled))
	lc.Cancel(model.Cancel{Task: 1}) // now it must not run again
	if want(t, lc); again.Recall != nil || again.StopReason.Code != model.ReasonAsked {
		t.Errorf("still to be requeued: %+v, %+v", again.Recall, again.StopReason)
	}
}

// TestRecordedEnd checks that a recorded decision about the end of an attempt replaces what
// would be decided.
func TestRecordedEnd(t *testing.T) {
	lc := begin(t)
	task := submit(lc, model.Request{ID: 1})
	start(lc, task)
	stopped(lc, task)
	decided(lc)
	lc.SetRecorded([]model.Decision{model.Requeue{Task: 1, Need: 3 * units.GiB, Phase: model.Queued}})
	lc.Finish(task, model.Failed, 1, model.Reason{Code: model.ReasonProgram})
	want(t, lc, "requeue 1: queued")
	if wantPhase(t, task, model.Queued); task.NextGrant != 3*units.GiB {
		t.Errorf("granted %v", task.NextGrant)
	}
}

// TestQueueMoved checks that a task changes places with the other tasks of its user.
func TestQueueMoved(t *testing.T) {
	lc := begin(t)
	for id := range model.TaskID(3) {
		submit(lc, model.Request{ID: id + 1})
	}
	order := func() (ids [3]int) {
		for id := range model.TaskID(3) {
			ids[lc.queue.Position(id+1)-1] = int(id + 1)
		}
		return ids
	}
	lc.QueueMoved(model.QueueMoved{Task: 3})
	if got := order(); got != [3]int{3, 1, 2} {
		t.Errorf("3 first: %v", got)
	}
	lc.QueueMoved(model.QueueMoved{Task: 1, Last: true})
	if got := order(); got != [3]int{3, 2, 1} {
		t.Errorf("1 last: %v", got)
	}
}

// TestTaskUpdated checks that a changed task keeps its place, and that one that has become
// impossible ends.
func TestTaskUpdated(t *testing.T) {
	lc := begin(t)
	task, high := submit(lc, model.Request{ID: 1}), model.High
	lc.Begin(hour.Add(time.Minute))
	lc.TaskUpdated(model.TaskUpdated{Task: 1, Change: model.TaskUpdate{Priority: &high}})
	if wantPhase(t, task, model.Queued); task.Priority != high || task.QueuedAt != hour {
		t.Errorf("priority %v, queued at %v", task.Priority, task.QueuedAt)
	}
	decided(lc)
	two := 2
	lc.TaskUpdated(model.TaskUpdated{Task: 1, Change: model.TaskUpdate{GPUs: &two}})
	want(t, lc, "failed 1: "+string(model.ReasonTooManyGPUs))
}

// TestTerminalInput checks that only a task that was suspended for idleness resumes when its
// user is back.
func TestTerminalInput(t *testing.T) {
	for _, code := range []model.ReasonCode{model.ReasonIdle, model.ReasonAsked} {
		lc := begin(t)
		task := submit(lc, model.Request{ID: 1})
		start(lc, task)
		stopped(lc, task)
		task.Last().Ended = 0
		task.Phase, task.Suspension = model.Suspended, &model.Suspension{Reason: model.Reason{Code: code}, Since: hour, From: task.Last().Grants}
		lc.TerminalInput(model.TerminalInput{Task: 1})
		if back := task.Suspension.Automatic; back != (code == model.ReasonIdle) || task.Waiting() != back {
			t.Errorf("%s: may resume %v, waits %v", code, back, task.Waiting())
		}
	}
}
