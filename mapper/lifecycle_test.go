package mapper

import (
	"reflect"
	"testing"
	"time"

	"carma/internal/units"
)

func TestLife(t *testing.T) {
	w := newWorld(t, plain(), 1)
	id := w.submitOnly(nil)
	w.wantPhase(id, Estimating)
	w.step(Estimated{At: w.now, Task: id, Estimate: Estimate{Memory: units.GiB, Method: "declared"}})
	w.wantPhase(id, Launching)
	w.now++
	w.started(id)
	w.wantPhase(id, Running)
	w.now++
	w.exitWith(Exited{Task: id, Class: ExitOK, Peak: 700 * units.MiB})
	want := Task{
		Request: Request{ID: id, GPUs: 1}, Phase: Succeeded, Submitted: w.now - 2,
		Estimate: Estimate{Memory: units.GiB, Method: "declared"}, NextGrant: units.GiB, QueuedAt: w.now - 2, Ended: w.now,
		Done: 1e-9, Speed: 1, PacedAt: w.now, // it ran for a nanosecond, alone
		Attempts: []Attempt{{
			N: 1, Grants: []Grant{{GPU: "GPU-0", Memory: units.GiB}}, Launched: w.now - 2, Started: w.now - 1, Ended: w.now,
			Class: ExitOK, Peak: 700 * units.MiB,
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
var byHand = Reason{Code: ReasonAsked, Text: "by hand"}

func TestCancel(t *testing.T) {
	w := newWorld(t, plain(), 1)
	blocker := w.submit(40*units.GiB, nil)

	estimating := w.submitOnly(nil)
	w.cancel(estimating)
	w.wantPhase(estimating, Cancelled)
	w.step(Estimated{At: w.now, Task: estimating, Estimate: Estimate{Memory: units.GiB}}) // comes too late
	if w.s.QueueLen() != 0 {
		t.Error("a cancelled task was queued")
	}

	queued := w.submit(units.GiB, nil)
	w.wantPhase(queued, Queued)
	w.cancel(queued)
	w.wantPhase(queued, Cancelled)
	if f := w.finished[queued]; f.Reason != byHand || f.Ended != w.now {
		t.Errorf("cancelled in the queue: %+v", f)
	}

	// Launching: the worker gets a Stop, and the memory stays allocated until it has
	// ended.
	w.cancel(blocker)
	w.wantPhase(blocker, Stopping)
	if len(w.stops) != 1 || w.stops[0] != (Stop{Task: blocker, Attempt: 1, Reason: byHand}) || w.gpu(0).Reserved != 40*units.GiB {
		t.Errorf("stops %+v, %s reserved", w.stops, w.gpu(0).Reserved)
	}
	w.started(blocker) // it crosses the stop
	w.wantPhase(blocker, Stopping)
	w.cancel(blocker)
	if len(w.stops) != 1 {
		t.Error("it was stopped twice")
	}
	w.exit(blocker, ExitStopped)
	w.wantPhase(blocker, Cancelled)

	running := w.submit(units.GiB, func(r *Request) { r.Retries = 3 })
	w.started(running)
	w.cancel(running)
	w.exit(running, ExitProgram) // the task is not run again, whatever its exit
	w.wantPhase(running, Cancelled)

	recovering := w.submit(units.GiB, nil)
	w.exit(recovering, ExitInfrastructure)
	w.wantPhase(recovering, Recovering)
	w.cancel(recovering)
	w.wantPhase(recovering, Cancelled)

	before := len(w.finished)
	w.cancel(recovering) // finished
	w.cancel(99)         // never was
	if len(w.finished) != before || len(w.s.Tasks()) != 0 {
		t.Error("cancelling what is not there did something")
	}
}

func TestTimeLimit(t *testing.T) {
	hour := func(r *Request) { r.TimeLimit = time.Hour }
	w := newWorld(t, plain(), 1)
	a := w.submit(units.GiB, hour)
	w.wait(3 * time.Hour) // does not count before the start
	w.started(a)
	w.wait(time.Hour - 1)
	w.wantPhase(a, Running)
	w.wait(1)
	w.wantPhase(a, Stopping)
	if len(w.stops) != 1 || say(w.stops[0].Reason) != "time-limit span=1h0m0s" {
		t.Errorf("stops %+v", w.stops)
	}
	w.exit(a, ExitStopped)
	w.wantFailed(a, "time-limit span=1h0m0s")

	// It counts for each attempt.
	b := w.submit(units.GiB, hour)
	w.started(b)
	w.wait(time.Minute * 50)
	w.exit(b, ExitEvicted)
	w.started(b)
	w.wait(time.Minute * 50)
	w.wantPhase(b, Running)
	w.wait(time.Minute * 10)
	w.wantPhase(b, Stopping)
	w.exit(b, ExitGPUOOM) // whatever its exit
	w.wantFailed(b, "time-limit span=1h0m0s")

	// A program that ends at the last moment has met the limit.
	c := w.submit(units.GiB, hour)
	w.started(c)
	w.now = w.now.Add(time.Hour)
	w.exit(c, ExitOK)
	w.wantPhase(c, Succeeded)

	// Cancelled before: the limit is not the reason.
	d := w.submit(units.GiB, hour)
	w.started(d)
	w.cancel(d)
	w.wait(2 * time.Hour)
	w.exit(d, ExitStopped)
	w.wantPhase(d, Cancelled)

	// As good as no limit.
	e := w.submit(units.GiB, func(r *Request) { r.TimeLimit = 1<<63 - 1 })
	w.started(e)
	w.wait(1000 * time.Hour)
	w.wantPhase(e, Running)
}

// TestStrayEvents checks that duplicate, late and unmatched events change nothing.
func TestStrayEvents(t *testing.T) {
	w := newWorld(t, plain(), 1)
	a := w.submit(20*units.GiB, nil)
	w.started(a)
	w.exit(a, ExitEvicted)
	w.started(a) // attempt 2 runs
	b := w.submit(30*units.GiB, nil)
	done := w.submit(units.GiB, nil)
	w.exit(done, ExitOK)
	w.step(Sampled{At: w.now, GPUs: []GPUSample{{ID: "GPU-0"}}}) // it is known to do nothing

	for _, ev := range []Event{
		Started{At: w.now + 1, Task: a, Attempt: 1},
		Started{At: w.now + 1, Task: a, Attempt: 2},
		Started{At: w.now + 1, Task: a, Attempt: 3},
		Started{At: w.now + 1, Task: b, Attempt: 1},
		Started{At: w.now + 1, Task: 99, Attempt: 1},
		Exited{At: w.now + 1, Task: a, Attempt: 1, Class: ExitOK},
		Exited{At: w.now + 1, Task: a, Attempt: 3, Class: ExitOK},
		Exited{At: w.now + 1, Task: b, Attempt: 1, Class: ExitOK},
		Exited{At: w.now + 1, Task: b, Attempt: 0, Class: ExitOK},
		Exited{At: w.now + 1, Task: done, Attempt: 1, Class: ExitProgram},
		Exited{At: w.now + 1, Task: 99, Attempt: 1, Class: ExitOK},
		TaskSubmitted{At: w.now + 1, Request: Request{ID: a, GPUs: 7}},
		TaskSubmitted{At: w.now + 1, Request: Request{ID: done, GPUs: 1}},
		Estimated{At: w.now + 1, Task: a, Estimate: Estimate{Memory: units.GiB}},
		Estimated{At: w.now + 1, Task: b, Estimate: Estimate{Memory: units.GiB}},
		Estimated{At: w.now + 1, Task: 99, Estimate: Estimate{Memory: units.GiB}},
		Sampled{At: w.now + 1, GPUs: []GPUSample{{ID: "elsewhere", OtherProcesses: units.GiB}}},
		Sampled{At: w.now + 1, GPUs: []GPUSample{{ID: "GPU-0", Tasks: []TaskUse{{Task: 99, Used: units.GiB}, {Task: b, Used: units.GiB}}}}},
		TimerFired{At: w.now + 1},
		TimerFired{At: w.now + 1},
		Configured{At: w.now + 1, Options: Options{Policy: "no such"}},
		Configured{At: w.now + 1, Options: Options{Policy: "magm"}}, // a look-ahead of 0
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

// TestTimeDoesNotRunBackwards checks that an event from the past happens now.
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
	w.step(TimerFired{At: now.Add(time.Minute)})
	w.wantOn(b, 0)
}

// TestWake checks that a timer is set when it is due earlier than the pending one, and
// again after that one has fired.
func TestWake(t *testing.T) {
	opt := plain()
	opt.WarmUp = time.Minute
	s := New(opt)
	wakes := func(ev Event) (at []units.Instant) {
		for _, d := range s.Step(ev) {
			if w, ok := d.(SetTimer); ok {
				at = append(at, w.At)
			}
		}
		return at
	}
	s.Step(GPUsFound{At: 1, GPUs: []GPUInfo{{ID: "a", Capacity: units.GiB}, {ID: "b", Index: 1, Capacity: units.GiB}}})
	for id := range TaskID(2) {
		s.Step(TaskSubmitted{At: 1, Request: Request{ID: id + 1, TimeLimit: 10 * time.Second}})
		s.Step(Estimated{At: 1, Task: id + 1, Estimate: Estimate{Memory: units.GiB}})
	}
	at := func(sec int) units.Instant { return units.Instant(1).Add(time.Duration(sec) * time.Second) }
	for _, row := range []struct {
		ev   Event
		want []units.Instant
	}{
		{Started{At: 1, Task: 1, Attempt: 1}, []units.Instant{at(10)}},
		{Started{At: at(5), Task: 2, Attempt: 1}, nil},   // at 15 s, later than the pending timer
		{TimerFired{At: at(9)}, []units.Instant{at(10)}}, // too early: requested again
		{TimerFired{At: at(10)}, []units.Instant{at(15)}},
		{Sampled{At: at(40)}, nil}, // the timer for 15 s is pending all the same
		{TimerFired{At: at(40)}, []units.Instant{at(60)}},
		{TimerFired{At: at(60)}, []units.Instant{at(65)}},
		{TimerFired{At: at(65)}, nil},
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
		id := w.submit(units.GiB, func(r *Request) { r.TimeLimit = 1000 * time.Hour })
		w.started(id)
		w.exit(id, ExitOK)
	}
	if n := len(w.s.timers); n > 1100 {
		t.Errorf("%d deadlines are kept", n)
	}
}

func TestStepTakesNoPointers(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("an event that would have been ignored in silence was taken")
		}
	}()
	New(plain()).Step(&TimerFired{At: 1})
}

// TestHeadroomRaised checks that a change of the options takes nothing from running
// tasks, and that the state stays consistent.
func TestHeadroomRaised(t *testing.T) {
	w := newWorld(t, plain(), 1)
	a := w.submit(40*units.GiB, nil)
	opt := plain()
	opt.Headroom = 5 * units.GiB
	w.step(Configured{At: w.now, Options: opt})
	b := w.submit(30*units.GiB, nil)
	w.wantOn(a, 0)
	w.wantOn(b)
	w.exit(a, ExitOK)
	w.wantOn(b, 0)
	w.wantOn(w.submit(6*units.GiB, nil))
	w.wantOn(w.submit(5*units.GiB, nil), 0)
}

func TestCloneIsDeep(t *testing.T) {
	w := newWorld(t, plain(), 2)
	a := w.submit(20*units.GiB, gpus(2))
	b := w.submit(15*units.GiB, nil)
	for _, id := range []TaskID{a, b} {
		w.started(id)
	}
	w.submit(30*units.GiB, nil)
	tasks := w.s.Tasks()
	before, err := w.s.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	c := w.s.Clone()
	c.Step(Sampled{At: w.now, GPUs: []GPUSample{{ID: "GPU-0", OtherProcesses: units.GiB, Tasks: []TaskUse{{Task: a, Used: 10 * units.GiB}, {Task: b, Used: 35 * units.GiB}}}}})
	c.Step(Exited{At: w.now, Task: a, Attempt: 1, Class: ExitGPUOOM})
	c.Step(Cancel{At: w.now, Task: 3})
	c.Step(GPUsFound{At: w.now})
	after, err := w.s.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if string(before) != string(after) {
		t.Errorf("a step of the clone changed the original from\n%s\nto\n%s", before, after)
	}
	w.sample(GPUSample{ID: "GPU-0", Tasks: []TaskUse{{Task: a, Used: 10 * units.GiB}, {Task: b, Used: 35 * units.GiB}}})
	w.exit(a, ExitGPUOOM)
	if got := tasks[1].Attempts[0].Grants[0].Memory; got != 15*units.GiB {
		t.Errorf("a copy of a task has changed: it is granted %s", got)
	}
}

func TestPhases(t *testing.T) {
	for phase, want := range map[Phase][2]bool{
		Estimating: {false, false}, Queued: {false, false}, Recovering: {false, false},
		Launching: {true, false}, Running: {true, false}, Stopping: {true, false},
		Suspending: {true, false}, Suspended: {false, false}, Resuming: {true, false},
		Succeeded: {false, true}, Failed: {false, true}, Cancelled: {false, true},
	} {
		if phase.Placed() != want[0] || phase.Finished() != want[1] {
			t.Errorf("%s: placed %v, finished %v", phase, phase.Placed(), phase.Finished())
		}
	}
}
