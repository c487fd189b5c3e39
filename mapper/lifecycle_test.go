package mapper

import (
	"reflect"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
)

func TestLife(t *testing.T) {
	w := newWorld(t, plain(), 1)
	id := w.submitOnly(nil)
	w.wantPhase(id, model.Estimating)
	w.step(model.Estimated{At: w.now, Task: id, Estimate: model.Estimate{Memory: units.GiB, Method: "declared"}})
	w.wantPhase(id, model.Launching)
	w.now++
	w.started(id)
	w.wantPhase(id, model.Running)
	w.now++
	w.exitWith(model.Exited{Task: id, Class: model.ExitOK, Peak: 700 * units.MiB})
	want := model.Task{
		Request: model.Request{ID: id, GPUs: 1}, Phase: model.Succeeded, Submitted: w.now - 2,
		Estimate: model.Estimate{Memory: units.GiB, Method: "declared"}, NextGrant: units.GiB, QueuedAt: w.now - 2, Ended: w.now,
		Done: 1e-9, Speed: 1, PacedAt: w.now, // it ran for a nanosecond, alone
		Attempts: []model.Attempt{{
			N: 1, Grants: []model.Grant{{GPU: "GPU-0", Memory: units.GiB}}, Launched: w.now - 2, Started: w.now - 1, Ended: w.now,
			Class: model.ExitOK, Peak: 700 * units.MiB,
		}},
	}
	if got := w.finished[id]; !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if g := w.gpu(0); g.Reserved != 0 || len(w.s.Tasks()) != 0 {
		t.Errorf("something is left: %+v, %+v", g, w.s.Tasks())
	}
}

// byHand is the reason used by world.cancel.
var byHand = model.Reason{Code: model.ReasonAsked, Text: "by hand"}

func TestCancel(t *testing.T) {
	w := newWorld(t, plain(), 1)
	blocker := w.submit(40*units.GiB, nil)

	estimating := w.submitOnly(nil)
	w.cancel(estimating)
	w.wantPhase(estimating, model.Cancelled)
	w.step(model.Estimated{At: w.now, Task: estimating, Estimate: model.Estimate{Memory: units.GiB}}) // too late to have an effect
	if w.s.QueueLen() != 0 {
		t.Error("a cancelled task was queued")
	}

	queued := w.submit(units.GiB, nil)
	w.wantPhase(queued, model.Queued)
	w.cancel(queued)
	w.wantPhase(queued, model.Cancelled)
	if f := w.finished[queued]; f.Reason != byHand || f.Ended != w.now {
		t.Errorf("cancelled in the queue: %+v", f)
	}

	// The task is launching. The worker gets a Stop, and the memory stays allocated until the
	// attempt has ended.
	w.cancel(blocker)
	w.wantPhase(blocker, model.Stopping)
	if len(w.stops) != 1 || w.stops[0] != (model.Stop{Task: blocker, Attempt: 1, Reason: byHand}) || w.gpu(0).Reserved != 40*units.GiB {
		t.Errorf("stops %+v, %s reserved", w.stops, w.gpu(0).Reserved)
	}
	w.started(blocker) // reported after the stop was decided
	w.wantPhase(blocker, model.Stopping)
	w.cancel(blocker)
	if len(w.stops) != 1 {
		t.Error("it was stopped twice")
	}
	w.exit(blocker, model.ExitStopped)
	w.wantPhase(blocker, model.Cancelled)

	running := w.submit(units.GiB, func(r *model.Request) { r.Retries = 3 })
	w.started(running)
	w.cancel(running)
	w.exit(running, model.ExitProgram) // the task does not run again after any exit
	w.wantPhase(running, model.Cancelled)

	recovering := w.submit(units.GiB, nil)
	w.exit(recovering, model.ExitInfrastructure)
	w.wantPhase(recovering, model.Recovering)
	w.cancel(recovering)
	w.wantPhase(recovering, model.Cancelled)

	before := len(w.finished)
	w.cancel(recovering) // a finished task
	w.cancel(99)         // a task that never existed
	if len(w.finished) != before || len(w.s.Tasks()) != 0 {
		t.Error("cancelling what is not there did something")
	}
}

func TestTimeLimit(t *testing.T) {
	hour := func(r *model.Request) { r.TimeLimit = time.Hour }
	w := newWorld(t, plain(), 1)
	a := w.submit(units.GiB, hour)
	w.wait(3 * time.Hour) // the time limit does not count before the start
	w.started(a)
	w.wait(time.Hour - 1)
	w.wantPhase(a, model.Running)
	w.wait(1)
	w.wantPhase(a, model.Stopping)
	if len(w.stops) != 1 || say(w.stops[0].Reason) != "time-limit span=1h0m0s" {
		t.Errorf("stops %+v", w.stops)
	}
	w.exit(a, model.ExitStopped)
	w.wantFailed(a, "time-limit span=1h0m0s")

	// It counts for each attempt.
	b := w.submit(units.GiB, hour)
	w.started(b)
	w.wait(time.Minute * 50)
	w.exit(b, model.ExitEvicted)
	w.started(b)
	w.wait(time.Minute * 50)
	w.wantPhase(b, model.Running)
	w.wait(time.Minute * 10)
	w.wantPhase(b, model.Stopping)
	w.exit(b, model.ExitGPUOOM) // for any exit
	w.wantFailed(b, "time-limit span=1h0m0s")

	// A program that ends at the last moment has met the limit.
	c := w.submit(units.GiB, hour)
	w.started(c)
	w.now = w.now.Add(time.Hour)
	w.exit(c, model.ExitOK)
	w.wantPhase(c, model.Succeeded)

	// The task was cancelled before, so the limit is not the reason.
	d := w.submit(units.GiB, hour)
	w.started(d)
	w.cancel(d)
	w.wait(2 * time.Hour)
	w.exit(d, model.ExitStopped)
	w.wantPhase(d, model.Cancelled)

	// A limit so long that it has no effect.
	e := w.submit(units.GiB, func(r *model.Request) { r.TimeLimit = 1<<63 - 1 })
	w.started(e)
	w.wait(1000 * time.Hour)
	w.wantPhase(e, model.Running)
}

// TestStrayEvents checks that duplicate, late and unmatched events change nothing.
func TestStrayEvents(t *testing.T) {
	w := newWorld(t, plain(), 1)
	a := w.submit(20*units.GiB, nil)
	w.started(a)
	w.exit(a, model.ExitEvicted)
	w.started(a) // attempt 2 runs
	b := w.submit(30*units.GiB, nil)
	done := w.submit(units.GiB, nil)
	w.exit(done, model.ExitOK)
	w.step(model.Sampled{At: w.now, GPUs: []model.GPUSample{{ID: "GPU-0"}}}) // it is known to do nothing

	for _, ev := range []model.Event{
		model.Started{At: w.now + 1, Task: a, Attempt: 1},
		model.Started{At: w.now + 1, Task: a, Attempt: 2},
		model.Started{At: w.now + 1, Task: a, Attempt: 3},
		model.Started{At: w.now + 1, Task: b, Attempt: 1},
		model.Started{At: w.now + 1, Task: 99, Attempt: 1},
		model.Exited{At: w.now + 1, Task: a, Attempt: 1, Class: model.ExitOK},
		model.Exited{At: w.now + 1, Task: a, Attempt: 3, Class: model.ExitOK},
		model.Exited{At: w.now + 1, Task: b, Attempt: 1, Class: model.ExitOK},
		model.Exited{At: w.now + 1, Task: b, Attempt: 0, Class: model.ExitOK},
		model.Exited{At: w.now + 1, Task: done, Attempt: 1, Class: model.ExitProgram},
		model.Exited{At: w.now + 1, Task: 99, Attempt: 1, Class: model.ExitOK},
		model.TaskSubmitted{At: w.now + 1, Request: model.Request{ID: a, GPUs: 7}},
		model.TaskSubmitted{At: w.now + 1, Request: model.Request{ID: done, GPUs: 1}},
		model.Estimated{At: w.now + 1, Task: a, Estimate: model.Estimate{Memory: units.GiB}},
		model.Estimated{At: w.now + 1, Task: b, Estimate: model.Estimate{Memory: units.GiB}},
		model.Estimated{At: w.now + 1, Task: 99, Estimate: model.Estimate{Memory: units.GiB}},
		model.Sampled{At: w.now + 1, GPUs: []model.GPUSample{{ID: "elsewhere", OtherProcesses: units.GiB}}},
		model.Sampled{At: w.now + 1, GPUs: []model.GPUSample{{ID: "GPU-0", Tasks: []model.TaskUse{{Task: 99, Used: units.GiB}, {Task: b, Used: units.GiB}}}}},
		model.TimerFired{At: w.now + 1},
		model.TimerFired{At: w.now + 1},
		model.Configured{At: w.now + 1, Options: model.Options{Policy: "no such"}},
		model.Configured{At: w.now + 1, Options: model.Options{Policy: "magm"}}, // invalid: a look-ahead of 0
	} {
		before := view(w.s)
		if launches := w.step(ev); len(launches) != 0 {
			t.Errorf("%#v launched %+v", ev, launches)
		}
		if after := view(w.s); !reflect.DeepEqual(before, after) {
			t.Errorf("%#v changed\n     %+v\ninto %+v", ev, before, after)
		}
	}
}

// view returns the visible parts of a state, except the time.
func view(s *State) []any {
	return []any{s.Tasks(), s.GPUs(), s.Options(), s.QueueLen(), s.LastID()}
}

// TestTimeDoesNotRunBackwards checks that an event with an earlier time is applied at the
// present time.
func TestTimeDoesNotRunBackwards(t *testing.T) {
	opt := plain()
	opt.WarmUp = time.Minute
	w := newWorld(t, opt, 1)
	a := w.submit(units.GiB, nil)
	now := w.s.Now()
	w.now -= units.Instant(time.Minute)
	w.started(a)
	if w.s.Now() != now || w.task(a).Current().Started != now {
		t.Errorf("it is %d and was %d; started %d", w.s.Now(), now, w.task(a).Current().Started)
	}
	b := w.submit(units.GiB, nil)
	if at, ok := w.s.NextTimer(); !ok || at != now.Add(time.Minute) {
		t.Errorf("the warm-up ends at %d", at)
	}
	w.step(model.TimerFired{At: now.Add(time.Minute)})
	w.wantOn(b, 0)
}

// TestWake checks that a timer is set when it is due earlier than the pending one, and
// again after that one has fired.
func TestWake(t *testing.T) {
	opt := plain()
	opt.WarmUp = time.Minute
	s := New(opt)
	wakes := func(ev model.Event) (at []units.Instant) {
		for _, d := range s.Step(ev) {
			if w, ok := d.(model.SetTimer); ok {
				at = append(at, w.At)
			}
		}
		return at
	}
	s.Step(model.GPUsFound{At: 1, GPUs: []model.GPUInfo{{ID: "a", Capacity: units.GiB}, {ID: "b", Index: 1, Capacity: units.GiB}}})
	for id := range model.TaskID(2) {
		s.Step(model.TaskSubmitted{At: 1, Request: model.Request{ID: id + 1, TimeLimit: 10 * time.Second}})
		s.Step(model.Estimated{At: 1, Task: id + 1, Estimate: model.Estimate{Memory: units.GiB}})
	}
	at := func(sec int) units.Instant { return units.Instant(1).Add(time.Duration(sec) * time.Second) }
	for _, row := range []struct {
		ev   model.Event
		want []units.Instant
	}{
		{model.Started{At: 1, Task: 1, Attempt: 1}, []units.Instant{at(10)}},
		{model.Started{At: at(5), Task: 2, Attempt: 1}, nil},   // at 15 s, later than the pending timer
		{model.TimerFired{At: at(9)}, []units.Instant{at(10)}}, // fired too early, so it is requested again
		{model.TimerFired{At: at(10)}, []units.Instant{at(15)}},
		{model.Sampled{At: at(40)}, nil}, // the timer for 15 s is still pending
		{model.TimerFired{At: at(40)}, []units.Instant{at(60)}},
		{model.TimerFired{At: at(60)}, []units.Instant{at(65)}},
		{model.TimerFired{At: at(65)}, nil},
	} {
		if got := wakes(row.ev); !reflect.DeepEqual(got, row.want) {
			t.Errorf("%#v: woke at %v, want %v", row.ev, got, row.want)
		}
	}
}

// TestDeadlinesAreForgotten checks that time limits of tasks that have ended do not
// accumulate.
func TestDeadlinesAreForgotten(t *testing.T) {
	w := newWorld(t, plain(), 1)
	for range 5000 {
		id := w.submit(units.GiB, func(r *model.Request) { r.TimeLimit = 1000 * time.Hour })
		w.started(id)
		w.exit(id, model.ExitOK)
	}
	if n := w.s.NumTimers(); n > 1100 {
		t.Errorf("%d deadlines are kept", n)
	}
}

func TestStepTakesNoPointers(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("an event that would have been ignored in silence was taken")
		}
	}()
	New(plain()).Step(&model.TimerFired{At: 1})
}

// TestHeadroomRaised checks that a change of the options does not reduce the grants of running
// tasks, and that the state stays consistent.
func TestHeadroomRaised(t *testing.T) {
	w := newWorld(t, plain(), 1)
	a := w.submit(40*units.GiB, nil)
	opt := plain()
	opt.Headroom = 5 * units.GiB
	w.step(model.Configured{At: w.now, Options: opt})
	b := w.submit(30*units.GiB, nil)
	w.wantOn(a, 0)
	w.wantOn(b)
	w.exit(a, model.ExitOK)
	w.wantOn(b, 0)
	w.wantOn(w.submit(6*units.GiB, nil))
	w.wantOn(w.submit(5*units.GiB, nil), 0)
}

func TestCloneIsDeep(t *testing.T) {
	w := newWorld(t, plain(), 2)
	a := w.submit(20*units.GiB, gpus(2))
	b := w.submit(15*units.GiB, nil)
	for _, id := range []model.TaskID{a, b} {
		w.started(id)
	}
	w.submit(30*units.GiB, nil)
	tasks := w.s.Tasks()
	before, err := w.s.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	c := w.s.Clone()
	c.Step(model.Sampled{At: w.now, GPUs: []model.GPUSample{{ID: "GPU-0", OtherProcesses: units.GiB, Tasks: []model.TaskUse{{Task: a, Used: 10 * units.GiB}, {Task: b, Used: 35 * units.GiB}}}}})
	c.Step(model.Exited{At: w.now, Task: a, Attempt: 1, Class: model.ExitGPUOOM})
	c.Step(model.Cancel{At: w.now, Task: 3})
	c.Step(model.GPUsFound{At: w.now})
	after, err := w.s.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if string(before) != string(after) {
		t.Errorf("a step of the clone changed the original from\n%s\nto\n%s", before, after)
	}
	w.sample(model.GPUSample{ID: "GPU-0", Tasks: []model.TaskUse{{Task: a, Used: 10 * units.GiB}, {Task: b, Used: 35 * units.GiB}}})
	w.exit(a, model.ExitGPUOOM)
	if got := tasks[1].Attempts[0].Grants[0].Memory; got != 15*units.GiB {
		t.Errorf("a copy of a task has changed: it is granted %s", got)
	}
}

func TestPhases(t *testing.T) {
	for phase, want := range map[model.Phase][2]bool{
		model.Estimating: {false, false}, model.Queued: {false, false}, model.Recovering: {false, false},
		model.Launching: {true, false}, model.Running: {true, false}, model.Stopping: {true, false},
		model.Suspending: {true, false}, model.Suspended: {false, false}, model.Resuming: {true, false},
		model.Succeeded: {false, true}, model.Failed: {false, true}, model.Cancelled: {false, true},
	} {
		if phase.Placed() != want[0] || phase.Finished() != want[1] {
			t.Errorf("%s: placed %v, finished %v", phase, phase.Placed(), phase.Finished())
		}
	}
}
