package recovery

import (
	"fmt"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/attempt"
	"carma/mapper/breaker"
	"carma/mapper/explain"
	"carma/mapper/fairshare"
	"carma/mapper/learn"
	"carma/mapper/ledger"
	"carma/mapper/lifecycle"
	"carma/mapper/model"
	"carma/mapper/observe"
	"carma/mapper/place"
	"carma/mapper/policy"
	"carma/mapper/predict"
	"carma/mapper/preempt"
	"carma/mapper/queue"
	"carma/mapper/reserve"
)

const hour = units.Instant(time.Hour)

// begin returns a recovery over two GPUs of 40 GiB, at the first hour.
func begin(t *testing.T, change func(*model.Options)) *Recovery {
	t.Helper()
	opt := model.Options{Policy: "first-fit", LookAhead: 64, Ageing: time.Hour, Attempts: 4, BlamelessRetries: 2, Backoff: 10 * time.Second, Watchdog: model.WatchdogRelaunch}
	if change != nil {
		change(&opt)
	}
	first, err := policy.Named(opt.Policy)
	if err != nil {
		t.Fatal(err)
	}
	l := ledger.New(opt, first.IdleOnly)
	var all []*model.GPU
	for i, id := range []model.GPUID{"a", "b"} {
		all = append(all, &model.GPU{GPUInfo: model.GPUInfo{ID: id, Node: "n", Index: i, Capacity: 40 * units.GiB, Suspend: model.SuspendMove}})
	}
	if err := l.Restore(ledger.Snapshot{Now: hour, Options: opt, GPUs: all}); err != nil {
		t.Fatal(err)
	}
	l.Begin(hour)
	us, pr, br := fairshare.New(l), predict.New(l), breaker.New(l)
	q := queue.New(l, us, pr)
	rs := reserve.New(l, pr, q)
	pl := place.New(l, pr, q, rs, first)
	pl.DropCache()
	pre := preempt.New(l, pr, q, rs, pl)
	ln, ob := learn.New(l, pr, q, pl, pre), observe.New(l, us, pr, pl, pre)
	lc := lifecycle.New(l, us, br, q, rs, pl, pre, ln, explain.New(l, us, br, q, rs, pl))
	at := attempt.New(l, us, pr, br, q, rs, pl, pre, lc)
	return New(l, us, pr, br, q, ln, ob, lc, at)
}

// add adds a waiting task that needs some GiB.
func add(rc *Recovery, id model.TaskID, need units.Bytes) *model.Task {
	t := &model.Task{Request: model.Request{ID: id, GPUs: 1, Priority: model.Normal, User: "ada", Kind: fmt.Sprint(id)}, NextGrant: need * units.GiB}
	rc.UseID(id)
	rc.AddTask(t)
	rc.lifecycle.Enqueue(t, model.Queued)
	return t
}

// start lets a waiting task run on a GPU.
func start(rc *Recovery, t *model.Task, gpu model.GPUID) {
	rc.queue.Remove(t)
	rc.attempts.Bind(t, []*model.GPU{rc.GPU(gpu)})
	rc.attempts.Started(model.Started{Task: t.ID, Attempt: t.Last().N})
	rc.ClearDecisions()
}

func run(rc *Recovery, id model.TaskID, gpu model.GPUID, need units.Bytes) *model.Task {
	t := add(rc, id, need)
	start(rc, t, gpu)
	return t
}

// exit ends the present attempt of a task and returns what was decided: one line.
func exit(rc *Recovery, t *model.Task, ev model.Exited) (line string) {
	ev.Task, ev.Attempt = t.ID, t.Last().N
	rc.Exited(ev)
	for _, d := range rc.Decisions() {
		switch d := d.(type) {
		case model.Requeue:
			line += fmt.Sprintf("%s: %s", d.Phase, d.Reason.Code)
		case model.Finish:
			line += fmt.Sprintf("%s: %s", d.Task.Phase, d.Task.Reason.Code)
		}
	}
	rc.ClearDecisions()
	return line
}

func says(to model.Phase, code model.ReasonCode) string { return fmt.Sprintf("%s: %s", to, code) }

// TestClasses checks what follows each class of exit, and that the attempt has left its GPU.
func TestClasses(t *testing.T) {
	for _, row := range []struct {
		class model.Class
		want  string
	}{
		{model.ExitOK, says(model.Succeeded, "")},
		{model.ExitProgram, says(model.Failed, model.ReasonProgram)},
		{model.ExitGPUOOM, says(model.Recovering, model.ReasonOOM)},
		{model.ExitSuspectedOOM, says(model.Recovering, model.ReasonOOMSuspected)},
		{model.ExitHostOOM, says(model.Failed, model.ReasonHostOOM)},
		{model.ExitInfrastructure, says(model.Recovering, model.ReasonInfrastructure)},
		{model.ExitEvicted, says(model.Recovering, model.ReasonEvicted)},
		{model.ExitMPSFault, says(model.Recovering, model.ReasonMPSFault)},
		{model.ExitCannotStart, says(model.Failed, model.ReasonCannotStart)},
		{model.ExitStopped, says(model.Recovering, model.ReasonStopped)},
	} {
		rc := begin(t, nil)
		task := run(rc, 1, "a", 10)
		if got := exit(rc, task, model.Exited{Class: row.class}); got != row.want {
			t.Errorf("%s: %q, want %q", row.class, got, row.want)
		}
		if !rc.GPU("a").Idle() || rc.users.Placed() != 0 || task.Last().Ended != hour {
			t.Errorf("%s: something is left of the attempt %+v", row.class, task.Last())
		}
	}
}

// TestRetries checks that a program is run again as often as its user allows, and that its
// caller may ask for more.
func TestRetries(t *testing.T) {
	rc := begin(t, nil)
	task := run(rc, 1, "a", 10)
	task.Retries = 1
	for i, want := range []string{says(model.Queued, model.ReasonRetry), says(model.Failed, model.ReasonProgram)} {
		if got := exit(rc, task, model.Exited{Class: model.ExitProgram, Code: 1}); got != want {
			t.Errorf("failure %d: %q, want %q", i+1, got, want)
		}
		if i == 0 {
			start(rc, task, "a")
		}
	}
	rc = begin(t, nil)
	task = run(rc, 1, "a", 10)
	if got := exit(rc, task, model.Exited{Class: model.ExitProgram, Again: "wait"}); got != says(model.Queued, model.ReasonProgram) || task.Hold == nil || task.Hold.Why != "wait" {
		t.Errorf("%q, hold %+v", got, task.Hold)
	}
}

// TestOOM checks how the grant grows with each GPU OOM, up to an exclusive GPU and the end.
func TestOOM(t *testing.T) {
	rc := begin(t, nil)
	task := run(rc, 1, "a", 10)
	for i, want := range []struct {
		line  string
		need  units.Bytes
		alone bool
	}{
		{says(model.Recovering, model.ReasonOOM), predict.AfterOOM(12 * units.GiB), false},
		{says(model.Recovering, model.ReasonOOM), predict.AfterOOM(12 * units.GiB).Scale(1.5), false},
		{says(model.Recovering, model.ReasonOOM), 0, true},
		{says(model.Failed, model.ReasonOOMAlone), 0, true},
	} {
		if got := exit(rc, task, model.Exited{Class: model.ExitGPUOOM, Demand: 12 * units.GiB}); got != want.line || task.NextExclusive != want.alone || want.need > 0 && task.NextGrant != want.need {
			t.Errorf("OOM %d: %q, needs %v, alone %v; want %+v", i+1, got, task.NextGrant, task.NextExclusive, want)
		}
		if task.Phase == model.Recovering {
			start(rc, task, "a")
		}
	}
	rc = begin(t, func(o *model.Options) { o.Attempts = 1 })
	if got := exit(rc, run(rc, 1, "a", 10), model.Exited{Class: model.ExitGPUOOM}); got != says(model.Failed, model.ReasonOOMTooOften) {
		t.Errorf("one attempt: %q", got)
	}
	rc = begin(t, nil)
	task = run(rc, 1, "a", 10)
	if exit(rc, task, model.Exited{Class: model.ExitSuspectedOOM}); !task.Suspected || task.OOMs != 0 {
		t.Errorf("suspected %v, %d OOMs", task.Suspected, task.OOMs)
	}
	start(rc, task, "a")
	if got := exit(rc, task, model.Exited{Class: model.ExitSuspectedOOM}); got != says(model.Failed, model.ReasonProgram) {
		t.Errorf("suspected again: %q", got)
	}
}

// TestOOMOfNeighbour checks that a task within its grant is not at fault where a neighbour
// exceeds its own, and that the grant of the neighbour grows.
func TestOOMOfNeighbour(t *testing.T) {
	rc := begin(t, nil)
	task, other := run(rc, 1, "a", 20), run(rc, 2, "a", 15)
	g := rc.GPU("a")
	g.Resident(2).Used = 25 * units.GiB
	g.Settle()
	before := task.NextGrant
	if got := exit(rc, task, model.Exited{Class: model.ExitGPUOOM, Demand: 18 * units.GiB}); got != says(model.Recovering, model.ReasonOOMBlameless) {
		t.Errorf("decided %q", got)
	}
	if task.OOMs != 0 || !task.Last().NotAtFault || task.NextGrant != before {
		t.Errorf("%d OOMs, needs %v, %+v", task.OOMs, task.NextGrant, task.Last())
	}
	if grant := g.Resident(2).Grant; grant < 25*units.GiB || other.NextGrant < 25*units.GiB {
		t.Errorf("the grant of the neighbour is %v, then %v", grant, other.NextGrant)
	}
}

// TestHostOOM checks that a task without a request for host memory gets more of it.
func TestHostOOM(t *testing.T) {
	rc := begin(t, nil)
	h := rc.OpenHost("n")
	h.HostInfo, h.Known = model.HostInfo{Node: "n", Total: 100 * units.GiB, Memory: 100 * units.GiB, Most: 100 * units.GiB, CPUs: 8000}, true
	task := run(rc, 1, "a", 10)
	task.Last().Host.Memory = 20 * units.GiB
	if got := exit(rc, task, model.Exited{Class: model.ExitHostOOM, HostPeak: 30 * units.GiB}); got != says(model.Recovering, model.ReasonHostAgain) || task.NextHostGrant != 45*units.GiB {
		t.Errorf("%q, %v of host memory", got, task.NextHostGrant)
	}
}

// TestNotAtFault checks that a task goes elsewhere after a failure of the infrastructure,
// waits longer each time, and fails at last.
func TestNotAtFault(t *testing.T) {
	rc := begin(t, nil)
	task := run(rc, 1, "a", 10)
	for i, want := range []string{says(model.Recovering, model.ReasonInfrastructure), says(model.Recovering, model.ReasonInfrastructure), says(model.Failed, model.ReasonTooOften)} {
		if got := exit(rc, task, model.Exited{Class: model.ExitInfrastructure}); got != want {
			t.Errorf("failure %d: %q, want %q", i+1, got, want)
		}
		if task.Phase == model.Recovering {
			if back := task.NotBefore.Sub(hour); back != 10*time.Second<<i || len(task.Avoid) != 1 || task.Avoid[0] != "a" {
				t.Errorf("failure %d: waits %v, avoids %v", i+1, back, task.Avoid)
			}
			start(rc, task, "a")
		}
	}
}

// TestStartFailed checks that a task keeps its place after a start that failed, at no cost
// for the task.
func TestStartFailed(t *testing.T) {
	rc := begin(t, nil)
	task := add(rc, 1, 10)
	rc.Begin(hour.Add(time.Minute))
	rc.queue.Remove(task)
	rc.attempts.Bind(task, []*model.GPU{rc.GPU("a")})
	rc.ClearDecisions()
	got := exit(rc, task, model.Exited{Class: model.ExitInfrastructure, Fault: &model.Fault{Scope: model.ScopeGPU, GPUs: []model.GPUID{"a"}}})
	if got != says(model.Queued, model.ReasonUnstarted) || task.QueuedAt != hour || task.NotAtFault != 0 || len(task.Avoid) != 1 {
		t.Errorf("%q, queued at %v, %d failures, avoids %v", got, task.QueuedAt, task.NotAtFault, task.Avoid)
	}
}

// TestStopped checks for each cause of a stop where the task goes, that a success counts all
// the same, and that a time limit ends it.
func TestStopped(t *testing.T) {
	for name, row := range map[string]struct {
		stop func(*model.Task)
		want string
	}{
		"cancelled":  {func(*model.Task) {}, says(model.Cancelled, model.ReasonAsked)},
		"slot":       {func(v *model.Task) { v.SlotUsed = true }, says(model.Queued, model.ReasonAsked)},
		"moved":      {func(v *model.Task) { v.Moving = true }, says(model.Recovering, model.ReasonAsked)},
		"requeue":    {func(v *model.Task) { v.Recall = &model.PendingRequeue{Hold: true} }, says(model.Queued, model.ReasonAsked)},
		"overuse":    {func(v *model.Task) { v.Overuse = true }, says(model.Recovering, model.ReasonOOM)},
		"time limit": {func(v *model.Task) { v.TimedOut = true }, says(model.Failed, model.ReasonAsked)},
	} {
		for _, class := range []model.Class{model.ExitStopped, model.ExitOK} {
			rc := begin(t, nil)
			v := run(rc, 1, "a", 10)
			v.Phase, v.StopReason = model.Stopping, model.Reason{Code: model.ReasonAsked}
			row.stop(v)
			want, again := row.want, name != "cancelled" && name != "time limit"
			if again && class == model.ExitOK {
				want = says(model.Succeeded, "")
			}
			if got := exit(rc, v, model.Exited{Class: class}); got != want {
				t.Errorf("%s, %s: %q, want %q", name, class, got, want)
			}
			if name == "requeue" && class == model.ExitStopped && (v.Phase != model.Held || v.Recall != nil) {
				t.Errorf("%s: %s, %+v", name, v.Phase, v.Recall)
			}
			if again && class == model.ExitStopped && (v.SlotUsed || v.Moving || v.Overuse) {
				t.Errorf("%s: the mark stays", name)
			}
		}
	}
}

// TestExitedWhileSuspended checks that an OOM of a suspended program is not one of a GPU, and
// that the task leaves its queue before it is requeued.
func TestExitedWhileSuspended(t *testing.T) {
	rc := begin(t, nil)
	v := run(rc, 1, "a", 10)
	v.Phase = model.Suspending
	v.Suspension = &model.Suspension{Automatic: true}
	rc.attempts.SuspendDone(model.SuspendDone{Task: 1, Attempt: 1})
	if v.Phase != model.Suspended || !v.Waiting() {
		t.Fatalf("%s, waits %v", v.Phase, v.Waiting())
	}
	if got := exit(rc, v, model.Exited{Class: model.ExitGPUOOM}); got != says(model.Recovering, model.ReasonInfrastructure) || v.Suspension != nil || rc.queue.QueueLen() != 1 {
		t.Errorf("%q, %+v, %d wait", got, v.Suspension, rc.queue.QueueLen())
	}
	if again := exit(rc, v, model.Exited{Class: model.ExitOK}); again != "" {
		t.Errorf("an attempt that has ended: %q", again)
	}
}
