package learn

import (
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/fairshare"
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

// begin returns a learner over a GPU of 40 GiB, at the first hour.
func begin(t *testing.T) *Learner {
	t.Helper()
	opt := model.Options{Policy: "first-fit", Learn: true, LearnMemory: time.Minute, LookAhead: 64, Ageing: time.Hour}
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
	us, pr := fairshare.New(l), predict.New(l)
	q := queue.New(l, us, pr)
	rs := reserve.New(l, pr, q)
	pl := place.New(l, pr, q, rs, first)
	pl.DropCache()
	return New(l, pr, q, pl, preempt.New(l, pr, q, rs, pl))
}

// add adds a task of a kind in a phase.
func add(ln *Learner, id model.TaskID, kind string, phase model.Phase) *model.Task {
	t := &model.Task{Request: model.Request{ID: id, GPUs: 1, Kind: kind, Priority: model.Normal}, Phase: phase, QueuedAt: hour}
	t.Estimate.WholeGPU = true
	ln.UseID(id)
	ln.AddTask(t)
	return t
}

// ended gives a task an attempt that has ended, with some GiB as its peak.
func ended(t *model.Task, peak units.Bytes) *model.Attempt {
	t.Attempts = []model.Attempt{{N: 1, Launched: hour, Started: hour, Ended: hour.Add(time.Hour), Peak: peak * units.GiB, Grants: []model.Grant{{GPU: "a", Memory: peak * units.GiB}}}}
	return t.Last()
}

// TestFirstGrant checks that a task of unknown memory learns it, and that the next of its
// kind is granted what the first needed.
func TestFirstGrant(t *testing.T) {
	ln := begin(t)
	first := add(ln, 1, "k", model.Running)
	if ln.SetFirstGrant(first); !first.Learner || first.NextExclusive {
		t.Fatalf("learns %v, exclusive %v", first.Learner, first.NextExclusive)
	}
	ln.LearnRun(first, ended(first, 10))
	second, other := add(ln, 2, "k", model.Queued), add(ln, 3, "other", model.Queued)
	ln.SetFirstGrant(second)
	ln.SetFirstGrant(other)
	if second.Learner || second.NextGrant < 10*units.GiB || second.NextGrant > 20*units.GiB {
		t.Errorf("second of the kind: learns %v, grant %v", second.Learner, second.NextGrant)
	}
	if !other.Learner {
		t.Error("a task of another kind has a known memory")
	}
}

// TestSiblings checks that waiting tasks of the kind get the memory of the first successful
// run, unless they were launched before, and that a run without a start changes nothing.
func TestSiblings(t *testing.T) {
	ln := begin(t)
	first, waits, retried := add(ln, 1, "k", model.Running), add(ln, 2, "k", model.Queued), add(ln, 3, "k", model.Recovering)
	for _, w := range []*model.Task{first, waits, retried} {
		ln.SetFirstGrant(w)
	}
	retried.Attempts = []model.Attempt{{N: 1}}
	a := ended(first, 10)
	a.Started = 0
	if ln.LearnRun(first, a); !waits.Learner {
		t.Error("an attempt that has not started has taught its siblings")
	}
	a.Started = hour
	ln.LearnRun(first, a)
	if waits.Learner || waits.NextGrant >= 20*units.GiB {
		t.Errorf("waiting sibling: learns %v, grant %v", waits.Learner, waits.NextGrant)
	}
	if !retried.Learner {
		t.Error("a sibling that was launched before got another grant")
	}
}

// TestFloor checks that a failed run gives the least memory for the next of its kind.
func TestFloor(t *testing.T) {
	ln := begin(t)
	first := add(ln, 1, "k", model.Running)
	ln.LearnFloor(first, 30*units.GiB)
	next := add(ln, 2, "k", model.Queued)
	next.Estimate = model.Estimate{Memory: 5 * units.GiB}
	if ln.SetFirstGrant(next); next.NextGrant < 30*units.GiB {
		t.Errorf("granted %v", next.NextGrant)
	}
}

// TestEndAttempt checks that an attempt that ended before its time limit, unobserved, is not
// counted as stopped for it.
func TestEndAttempt(t *testing.T) {
	for _, row := range []struct {
		after time.Duration
		late  bool
	}{{50 * time.Minute, false}, {70 * time.Minute, true}} {
		ln := begin(t)
		task := add(ln, 1, "k", model.Stopping)
		task.TimeLimit, task.TimedOut, task.StopReason = time.Hour, true, model.Reason{Code: model.ReasonTimeLimit}
		task.Attempts = []model.Attempt{{N: 1, Launched: hour, Started: hour}}
		ln.Begin(hour.Add(2 * time.Hour))
		a := task.Last()
		ln.EndAttempt(task, a, model.Exited{Class: model.ExitOK, Finished: hour.Add(row.after)})
		if task.TimedOut != row.late || a.Ended != hour.Add(row.after) {
			t.Errorf("after %v: timed out %v, ended %v", row.after, task.TimedOut, a.Ended)
		}
	}
}

// TestUpdateWaiting checks that a new estimate replaces the grant, and that the need raised
// after a GPU OOM stays without one.
func TestUpdateWaiting(t *testing.T) {
	ln := begin(t)
	task := add(ln, 1, "k", model.Recovering)
	task.Estimate, task.Attempts, task.NextGrant = model.Estimate{Memory: 5 * units.GiB}, []model.Attempt{{N: 1}}, 12*units.GiB
	if ln.UpdateWaiting(task, &model.TaskUpdate{}); task.NextGrant != 12*units.GiB {
		t.Errorf("without an estimate: %v", task.NextGrant)
	}
	if ln.UpdateWaiting(task, &model.TaskUpdate{Estimate: &model.Estimate{Memory: 8 * units.GiB}}); task.NextGrant != 8*units.GiB {
		t.Errorf("with an estimate: %v", task.NextGrant)
	}
}
