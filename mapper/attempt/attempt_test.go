package attempt

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
	"carma/mapper/lifecycle"
	"carma/mapper/model"
	"carma/mapper/place"
	"carma/mapper/policy"
	"carma/mapper/predict"
	"carma/mapper/preempt"
	"carma/mapper/queue"
	"carma/mapper/reserve"
)

const hour = units.Instant(time.Hour)

// begin returns the attempts over a machine with two GPUs of 40 GiB that can suspend, at
// the first hour.
func begin(t *testing.T) *Attempts {
	t.Helper()
	opt := model.Options{Policy: "first-fit", LookAhead: 64, Ageing: time.Hour, Interval: time.Minute, LaunchesAtOnce: 1, Backoff: 10 * time.Second}
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
	ex := explain.New(l, us, br, q, rs, pl)
	lc := lifecycle.New(l, us, br, q, rs, pl, pre, learn.New(l, pr, q, pl, pre), ex)
	return New(l, us, pr, br, q, rs, pl, pre, lc)
}

// wait adds a waiting task that needs 10 GiB.
func wait(at *Attempts, id model.TaskID) *model.Task {
	t := &model.Task{Request: model.Request{ID: id, GPUs: 1, Priority: model.Normal, User: "ada"}, NextGrant: 10 * units.GiB}
	at.UseID(id)
	at.AddTask(t)
	at.lifecycle.Enqueue(t, model.Queued)
	return t
}

// bind launches or resumes a waiting task on a GPU.
func bind(at *Attempts, t *model.Task, gpu model.GPUID) {
	at.queue.Remove(t)
	at.Bind(t, []*model.GPU{at.GPU(gpu)})
}

// run adds a task that runs on a GPU.
func run(at *Attempts, id model.TaskID, gpu model.GPUID) *model.Task {
	t := wait(at, id)
	bind(at, t, gpu)
	at.LaunchAccepted(model.LaunchAccepted{Task: id, Attempt: t.Last().N})
	at.Started(model.Started{Task: id, Attempt: t.Last().N})
	at.ClearDecisions()
	return t
}

// suspend suspends a running task. It waits to resume then.
func suspend(at *Attempts, t *model.Task, inPlace bool) {
	at.preempter.ApplySuspend(t, model.Suspend{Task: t.ID, Attempt: t.Last().N, Reason: model.Reason{Code: model.ReasonMoved}, Leave: inPlace})
	at.SuspendDone(model.SuspendDone{Task: t.ID, Attempt: t.Last().N})
	at.ClearDecisions()
}

// decided returns the decisions so far in short, and drops them.
func decided(at *Attempts) (all []string) {
	for _, d := range at.Decisions() {
		switch d := d.(type) {
		case model.Launch:
			all = append(all, fmt.Sprintf("launch %d.%d on %s", d.Task, d.Attempt, d.Grants[0].GPU))
		case model.Resume:
			all = append(all, fmt.Sprintf("resume %d on %s from %s", d.Task, d.Grants[0].GPU, d.From[0]))
		case model.Finish:
			all = append(all, fmt.Sprintf("finish %d: %s", d.Task.ID, d.Task.Phase))
		}
	}
	at.ClearDecisions()
	return all
}

func want(t *testing.T, at *Attempts, lines ...string) {
	t.Helper()
	if got := decided(at); !slices.Equal(got, lines) {
		t.Errorf("decided %q, want %q", got, lines)
	}
}

// wantOn checks the phase of a task, and that it has its grant on the given GPU alone.
func wantOn(t *testing.T, at *Attempts, task *model.Task, phase model.Phase, gpu model.GPUID) {
	t.Helper()
	for _, g := range at.GPUList() {
		if on := g.Resident(task.ID) != nil; on != (g.ID == gpu) || on && g.Resident(task.ID).Grant != 10*units.GiB {
			t.Errorf("task %d on %s: %v, want it on %q", task.ID, g.ID, on, gpu)
		}
		if err := at.AuditGPU(g); err != nil {
			t.Error(err)
		}
	}
	if task.Phase != phase {
		t.Errorf("task %d: %s, want %s", task.ID, task.Phase, phase)
	}
	if placed := at.users.Placed() > 0; placed != (gpu != "") {
		t.Errorf("its user has something placed: %v", placed)
	}
}

// TestLaunch checks that a launch allocates at once, that it counts for the limit until the
// engine accepts it, and that the option Interval delays the next.
func TestLaunch(t *testing.T) {
	at := begin(t)
	task := wait(at, 1)
	bind(at, task, "b")
	want(t, at, "launch 1.1 on b")
	wantOn(t, at, task, model.Launching, "b")
	if !at.LimitReached() || at.InFlight() != 1 || at.NotBefore() != hour.Add(time.Minute) {
		t.Errorf("limit reached %v, %d in flight, next at %v", at.LimitReached(), at.InFlight(), at.NotBefore())
	}
	at.LaunchAccepted(model.LaunchAccepted{Task: 1, Attempt: 2}) // another attempt
	if !at.LimitReached() {
		t.Error("the acceptance of another attempt ends a launch")
	}
	at.LaunchAccepted(model.LaunchAccepted{Task: 1, Attempt: 1})
	if at.LimitReached() || task.Phase != model.Launching {
		t.Errorf("limit reached %v, phase %s", at.LimitReached(), task.Phase)
	}
	at.Begin(hour.Add(time.Second))
	at.Started(model.Started{Task: 1, Attempt: 1})
	if wantOn(t, at, task, model.Running, "b"); task.Last().Started != at.Now() {
		t.Errorf("started at %v", task.Last().Started)
	}
}

// TestStartEndsLaunch checks that a started attempt is no longer in flight without an
// acceptance, and that a snapshot has the launches in flight.
func TestStartEndsLaunch(t *testing.T) {
	at := begin(t)
	bind(at, wait(at, 1), "a")
	saved := at.Save()
	at.Started(model.Started{Task: 1, Attempt: 1})
	if at.LimitReached() {
		t.Error("a running attempt is in flight")
	}
	other := begin(t)
	bind(other, wait(other, 1), "a")
	other.Restore(Snapshot{})
	if other.LimitReached() || other.NotBefore() != 0 {
		t.Error("restored from an empty snapshot, with launches in flight")
	}
	if other.Restore(saved); !other.LimitReached() || other.NotBefore() != hour.Add(time.Minute) {
		t.Error("a launch in flight is lost in the snapshot")
	}
}

// TestConfigured checks that a shorter interval counts at once, and a longer one from the
// next launch on.
func TestConfigured(t *testing.T) {
	at := begin(t)
	bind(at, wait(at, 1), "a")
	for _, row := range []struct{ interval, want time.Duration }{{time.Hour, time.Minute}, {time.Second, time.Second}} {
		opt := *at.Options()
		opt.Interval = row.interval
		at.Configure(opt, false)
		if at.Configured(); at.NotBefore() != hour.Add(row.want) || !at.LimitReached() {
			t.Errorf("interval %v: next at %v, limit reached %v", row.interval, at.NotBefore(), at.LimitReached())
		}
	}
	opt := *at.Options()
	opt.LaunchesAtOnce = 0
	at.Configure(opt, false)
	if at.Configured(); len(at.Save().Handing) > 0 {
		t.Error("launches are counted without a limit")
	}
}

// TestSuspension checks that a suspended task holds nothing on GPUs, waits, and resumes on
// another GPU.
func TestSuspension(t *testing.T) {
	at := begin(t)
	task := run(at, 1, "a")
	suspend(at, task, false)
	wantOn(t, at, task, model.Suspended, "")
	if !task.Waiting() || task.Suspension.Since != hour {
		t.Fatalf("waits %v: %+v", task.Waiting(), task.Suspension)
	}
	bind(at, task, "b")
	want(t, at, "resume 1 on b from a")
	wantOn(t, at, task, model.Resuming, "b")
	at.Begin(hour.Add(time.Minute))
	at.Resumed(model.Resumed{Task: 1, Attempt: 1})
	if wantOn(t, at, task, model.Running, "b"); task.Suspension != nil || task.Last().SuspendedTime != time.Minute {
		t.Errorf("after %v: %+v", task.Last().SuspendedTime, task.Suspension)
	}
}

// TestSuspensionFails checks that a task that cannot be suspended runs on, and that one that
// cannot resume waits longer each time.
func TestSuspensionFails(t *testing.T) {
	at := begin(t)
	task := run(at, 1, "a")
	at.preempter.ApplySuspend(task, model.Suspend{Task: 1, Attempt: 1, Reason: model.Reason{Code: model.ReasonMoved}})
	at.SuspendDone(model.SuspendDone{Task: 1, Attempt: 1, Failure: "no"})
	if wantOn(t, at, task, model.Running, "a"); !task.Last().Stays || task.Suspension != nil {
		t.Errorf("stays %v: %+v", task.Last().Stays, task.Suspension)
	}
	suspend(at, task, false)
	for _, back := range []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second} {
		bind(at, task, "b")
		at.Resumed(model.Resumed{Task: 1, Attempt: 1, Failure: "no"})
		if wantOn(t, at, task, model.Suspended, ""); task.NotBefore != hour.Add(back) || !task.Waiting() || task.Last().Grants[0].GPU != "a" {
			t.Errorf("next try at %v, waits %v, grants %+v", task.NotBefore, task.Waiting(), task.Last().Grants)
		}
	}
	if most := at.Backoff(100); most != 64*10*time.Second {
		t.Errorf("most: %v", most)
	}
}

// TestResidue checks that a program that has vacated its GPU is taken to keep some memory
// there until it resumes.
func TestResidue(t *testing.T) {
	at := begin(t)
	task := run(at, 1, "a")
	suspend(at, task, true)
	g := at.GPU("a")
	if g.ResidueOf(task) != model.AssumedResidue || g.OtherProcesses != model.AssumedResidue {
		t.Errorf("residue %v, other processes %v", g.ResidueOf(task), g.OtherProcesses)
	}
	bind(at, task, "a")
	if g.ResidueOf(task) != 0 || g.OtherProcesses != 0 {
		t.Errorf("resumed: residue %v, other processes %v", g.ResidueOf(task), g.OtherProcesses)
	}
}

// TestDetach checks that a task leaves its GPUs or its queue, in each phase.
func TestDetach(t *testing.T) {
	at := begin(t)
	waiting, running, suspended := wait(at, 1), run(at, 2, "a"), run(at, 3, "b")
	suspend(at, suspended, true)
	for _, task := range []*model.Task{waiting, running, suspended} {
		at.Detach(task)
		if a := task.Last(); task.Suspension != nil || a != nil && a.Ended == 0 {
			t.Errorf("task %d: %+v, %+v", task.ID, task.Suspension, a)
		}
	}
	if !at.GPU("a").Idle() || !at.GPU("b").Idle() || at.GPU("b").OtherProcesses != 0 || at.queue.QueueLen() != 0 || at.users.Placed() != 0 {
		t.Error("something is left of them")
	}
}

// TestAdoptOrphan checks that a container that runs is booked without a launch, and ends the
// attempt that was recorded before.
func TestAdoptOrphan(t *testing.T) {
	at := begin(t)
	task := run(at, 1, "a")
	next := at.NotBefore()
	at.Begin(hour.Add(time.Minute))
	at.AdoptOrphan(model.OrphanAdopted{Request: model.Request{ID: 1}, Attempt: 3, Launched: hour.Add(time.Second), Grants: []model.Grant{{GPU: "b", Memory: 10 * units.GiB}}})
	want(t, at)
	wantOn(t, at, task, model.Running, "b")
	if n := len(task.Attempts); n != 3 || task.Attempts[0].Class != model.ExitInfrastructure || task.Last().Started != hour.Add(time.Second) || at.NotBefore() != next {
		t.Errorf("%d attempts %+v, next launch at %v", n, task.Attempts, at.NotBefore())
	}
	before := len(task.Attempts)
	at.AdoptOrphan(model.OrphanAdopted{Request: model.Request{ID: 1}, Attempt: 3, Grants: []model.Grant{{GPU: "a"}}}) // an old one
	at.AdoptOrphan(model.OrphanAdopted{Request: model.Request{ID: 1}, Attempt: 4, Grants: []model.Grant{{GPU: "a"}, {GPU: "a"}}})
	if len(task.Attempts) != before {
		t.Errorf("adopted: %+v", task.Last())
	}
}

// TestRecorded checks that recorded launches and grants are repeated even where they do not
// fit, and on a GPU that is gone.
func TestRecorded(t *testing.T) {
	at := begin(t)
	task := wait(at, 1)
	at.ApplyLaunch(task, model.Launch{Task: 1, Attempt: 4, Grants: []model.Grant{{GPU: "gone", Memory: 50 * units.GiB}}})
	if g := at.GPU("gone"); task.Last().N != 4 || g == nil || !g.Missing || g.Reserved != 50*units.GiB {
		t.Fatalf("attempt %+v on %+v", task.Last(), g)
	}
	at.ApplyGrants(task, model.GrantChanged{Task: 1, Attempt: 4, Grants: []model.Grant{{GPU: "gone", Memory: 60 * units.GiB}}})
	if g := at.GPU("gone"); g.Reserved != 60*units.GiB || g.Bookable < g.Reserved {
		t.Errorf("reserved %v of %v", g.Reserved, g.Bookable)
	}
	at.EndRecovered(model.EndRecovered{Task: model.Task{Request: model.Request{ID: 1}, Phase: model.Failed}})
	if at.GPU("gone") != nil || at.TaskByID(1) != nil {
		t.Error("the ended task or its GPU is still there")
	}
}
