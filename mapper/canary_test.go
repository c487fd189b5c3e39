package mapper

import (
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/ledger"
	"carma/mapper/model"

	"pgregory.net/rapid"
)

const sethostname = "sethostname: invalid argument"

// noStartUnknown fails the start of a launched task for an unknown reason.
func (w *world) noStartUnknown(id model.TaskID) []model.Launch {
	w.t.Helper()
	return w.noStartBy(id, model.Fault{Scope: model.ScopeUnknown, Code: "unknown", Cause: sethostname})
}

func (w *world) canary(outcome model.CanaryOutcome) []model.Launch {
	w.t.Helper()
	ev := model.CanaryEnded{At: w.now, Outcome: outcome}
	if outcome == model.CanaryFailed {
		ev.Fault = &model.Fault{Scope: model.ScopeUnknown, Code: "unknown", Cause: "the canary fails too"}
	}
	return w.step(ev)
}

// wakeAt advances the time to the next timer.
func (w *world) wakeAt() []model.Launch {
	w.t.Helper()
	at, ok := w.s.NextTimer()
	if !ok {
		w.t.Fatal("no wake-up is asked for")
	}
	w.now = max(w.now, at)
	return w.step(model.TimerFired{At: w.now})
}

// TestOneUsersFault checks R4 of the third review. One user submits 40 tasks that never
// start, and the engine's message does not say why. The engine is not at fault, other
// users' tasks start at once, and each of the 40 ends after a bounded number of starts
// with the engine's message.
func TestOneUsersFault(t *testing.T) {
	w := newWorld(t, plain(), 4)
	bob := map[model.TaskID]bool{}
	for range 40 {
		bob[w.submit(units.GiB, by("bob"))] = true
	}
	handled, canaries := 0, 0
	for round := 0; len(w.finished) < 40; round++ {
		if round > 5000 {
			t.Fatalf("only %d tasks have ended", len(w.finished))
		}
		for ; handled < len(w.launches); handled++ {
			if id := w.launches[handled].Task; bob[id] {
				w.noStartUnknown(id)
			}
		}
		if sick := w.s.Breakers(); len(sick) != 0 || w.s.breakers.Save().Sick.Paused() {
			t.Fatalf("the engine is blamed: %+v", sick)
		}
		if round%50 == 10 {
			good := w.submit(units.GiB, by("alice"))
			if w.on(good) == nil {
				t.Fatalf("task %d of another user waits", good)
			}
			w.cancel(good) // its start has no result
			w.exit(good, model.ExitStopped)
		}
		if w.s.CanaryDue() {
			canaries++
			w.canary(model.CanaryStarted)
		}
		if len(w.finished) < 40 {
			w.wakeAt()
		}
	}
	for id := range bob {
		end := w.finished[id]
		if end.Phase != model.Failed || end.Reason.Code != model.ReasonNeverStarted || end.Reason.Cause == nil || end.Reason.Cause.Text != sethostname {
			t.Errorf("task %d: %s, %s", id, end.Phase, say(end.Reason))
		}
		if last := end.Last(); last.Class != model.ExitCannotStart || last.NotAtFault || last.NumStarts() != w.s.Options().BlamelessRetries+2 {
			t.Errorf("task %d: %s after %d starts", id, last.Class, last.NumStarts())
		}
	}
	if canaries < w.s.Options().BlamelessRetries || canaries > 1000 {
		t.Errorf("%d canaries", canaries)
	}
	if w.s.breakers.Save().Complaints != nil || w.s.CanaryDue() || w.s.breakers.Save().Canary.Next != 0 {
		t.Errorf("left over: %+v, %+v", w.s.breakers.Save().Complaints, w.s.breakers.Save().Canary)
	}
}

// TestCanaryFails checks that a canary that fails opens the circuit breaker at once, for
// complaints of any user. No task loses an attempt, the canary is tried at growing intervals,
// and its start closes the breaker.
func TestCanaryFails(t *testing.T) {
	w := newWorld(t, plain(), 4)
	ids := []model.TaskID{w.submit(30*units.GiB, by("bob")), w.submit(30*units.GiB, by("bob"))}
	w.noStartUnknown(ids[0])
	if !w.s.CanaryDue() {
		t.Fatal("no canary is asked for")
	}
	w.canary(model.CanaryFailed)
	sick := w.s.Breakers()
	if len(sick) != 1 || sick[0].Scope != model.ScopeEngine || !sick[0].Paused || sick[0].Cause != "the canary fails too" {
		t.Fatalf("%+v", sick)
	}
	waits := w.submit(30*units.GiB, by("alice"))
	if w.on(waits) != nil {
		t.Fatal("a task is launched while the breaker is open")
	}
	var gaps []time.Duration
	last := w.now
	for len(gaps) < 12 {
		for _, l := range w.wakeAt() {
			w.noStartUnknown(l.Task)
		}
		if w.s.CanaryDue() {
			gaps, last = append(gaps, w.now.Sub(last)), w.now
			w.canary(model.CanaryFailed)
		}
	}
	for i, gap := range gaps {
		if want := min(w.s.NextProbe()<<min(i, 10), ledger.MaxProbeInterval); gap != want {
			t.Errorf("canary %d came after %s, want %s", i, gap, want)
		}
	}
	for _, id := range append(ids, waits) {
		if task := w.task(id); task.Phase.Finished() || task.StartFailuresWhileOthersStart != 0 || task.NotAtFault != 0 || task.Failures != 0 {
			t.Errorf("task %d lost something: %+v", id, task)
		}
	}
	for !w.s.CanaryDue() {
		for _, l := range w.wakeAt() {
			w.noStartUnknown(l.Task)
		}
	}
	w.canary(model.CanaryStarted)
	if len(w.s.Breakers()) != 0 || w.s.breakers.Save().Canary.Wait > 0 {
		t.Errorf("still open: %+v", w.s.Breakers())
	}
	for _, id := range append(ids, waits) {
		if w.on(id) == nil || w.task(id).StartFailuresWhileOthersStart != 0 {
			t.Errorf("task %d waits: %+v", id, w.task(id))
		}
	}
}

// TestTwoUsersComplain: if tasks of two users fail for an unknown reason, that counts against
// the engine. The start of the canary, the end of the complaining tasks, and the start of a
// task each close the breaker.
func TestTwoUsersComplain(t *testing.T) {
	for name, end := range map[string]func(w *world, ids []model.TaskID){
		"canary": func(w *world, _ []model.TaskID) { w.canary(model.CanaryStarted) },
		"tasks gone": func(w *world, ids []model.TaskID) {
			for _, id := range ids {
				if len(w.s.Breakers()) != 1 {
					w.t.Errorf("the alarm clears before task %d is gone", id)
				}
				w.cancel(id)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, plain(), 4)
			ids := []model.TaskID{w.submit(units.GiB, by("bob")), w.submit(units.GiB, by("bob")), w.submit(units.GiB, by("alice"))}
			w.noStartUnknown(ids[0])
			w.noStartUnknown(ids[1])
			if len(w.s.Breakers()) != 0 {
				t.Fatalf("one user's word: %+v", w.s.Breakers())
			}
			w.noStartUnknown(ids[2])
			if sick := w.s.Breakers(); len(sick) != 1 || !sick[0].Paused || sick[0].Failures != 3 {
				t.Fatalf("%+v", sick)
			}
			end(w, ids)
			if len(w.s.Breakers()) != 0 {
				t.Errorf("the alarm stays: %+v", w.s.Breakers())
			}
			if id := w.submit(units.GiB, by("carol")); w.on(id) == nil {
				t.Errorf("a new task waits")
			}
		})
	}
}

// TestNoCanaryHere checks that, if no canary can run, complaints of one user count against the
// tasks, and complaints of two users against the engine.
func TestNoCanaryHere(t *testing.T) {
	w := newWorld(t, plain(), 4)
	bad := w.submit(units.GiB, by("bob"))
	for n := 0; w.finished[bad].ID == 0; n++ {
		if n > 1000 {
			t.Fatal("it never fails")
		}
		if w.task(bad).Phase == model.Launching {
			w.noStartUnknown(bad)
		} else {
			w.wakeAt()
		}
		if w.s.CanaryDue() {
			w.canary(model.CanaryMissing)
		}
	}
	ids := []model.TaskID{w.submit(units.GiB, by("bob")), w.submit(units.GiB, by("bob")), w.submit(units.GiB, by("alice"))}
	for _, id := range ids {
		w.noStartUnknown(id)
	}
	w.now = w.now.Add(w.s.NextProbe())
	w.canary(model.CanaryMissing)
	if sick := w.s.Breakers(); len(sick) != 1 || !sick[0].Paused {
		t.Errorf("%+v", sick)
	}
}

// TestTaskStartsInPlaceOfCanary checks that the start of any task also resolves the complaints,
// and that no canary is needed any more.
func TestTaskStartsInPlaceOfCanary(t *testing.T) {
	w := newWorld(t, plain(), 4)
	bad, good := w.submit(units.GiB, by("bob")), w.submit(units.GiB, by("alice"))
	w.noStartUnknown(bad)
	w.started(good)
	if w.s.CanaryDue() || w.s.breakers.Save().Complaints != nil || w.task(bad).StartFailuresWhileOthersStart != 1 {
		t.Errorf("canary due: %v, complaints %+v, %d strikes", w.s.CanaryDue(), w.s.breakers.Save().Complaints, w.task(bad).StartFailuresWhileOthersStart)
	}
	w.wait(w.s.NextProbe())
	w.noStartUnknown(bad)
	if why, _ := w.s.Why(bad); why.Binding.Cause == nil || why.Binding.Cause.Limit != w.s.Options().BlamelessRetries {
		t.Errorf("why: %+v", why.Binding)
	}
}

// TestGoneTasksRaiseNoAlarm checks R4: after the tasks whose starts failed for a known
// cause have ended, the canary shows whether the cause persists, and new tasks start at
// once.
func TestGoneTasksRaiseNoAlarm(t *testing.T) {
	w := newWorld(t, plain(), 4)
	ids := []model.TaskID{w.submit(units.GiB, nil), w.submit(units.GiB, nil), w.submit(units.GiB, nil)}
	for _, id := range ids {
		w.noStart(id)
	}
	for _, id := range ids {
		if len(w.s.Breakers()) != 1 {
			t.Errorf("%+v", w.s.Breakers())
		}
		if w.s.CanaryDue() {
			t.Errorf("a canary is asked for while task %d complains of a known cause", id)
		}
		w.cancel(id)
	}
	if !w.s.CanaryDue() {
		t.Fatal("no canary is asked for")
	}
	w.canary(model.CanaryStarted)
	if len(w.s.Breakers()) != 0 {
		t.Errorf("%+v", w.s.Breakers())
	}
	if id := w.submit(units.GiB, nil); w.on(id) == nil {
		t.Error("a new task waits")
	}
}

// TestEvidence checks, for any outcomes of starts and canaries, that failed starts of one user
// never delay other users' tasks while the canary starts, and that no task fails for an engine
// on which the canary fails.
func TestEvidence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(t)
		m.opt.BlamelessRetries, m.opt.Interval, m.opt.WarmUp = rapid.IntRange(0, 8).Draw(t, "retries"), 0, 0
		m.opt.QuotaTasks, m.opt.QuotaGPUs, m.opt.QuotaMemory, m.opt.Slot, m.opt.Quotas = 0, 0, 0, 0, nil
		m.step(t, model.Configured{At: m.now, Options: m.opt})
		works := rapid.Bool().Draw(t, "the engine works")
		n := rapid.IntRange(1, 8).Draw(t, "tasks")
		for range n {
			m.last++
			m.shape[m.last], m.open[m.last] = model.Request{ID: m.last, GPUs: 1, User: "bob"}, true
			m.born[m.last] = m.now
			m.step(t, model.TaskSubmitted{At: m.now, Request: m.shape[m.last]})
			m.step(t, model.Estimated{At: m.now, Task: m.last, Estimate: model.Estimate{Memory: units.GiB}})
		}
		for round := 0; len(m.open) > 0 && (works || round < 60); round++ {
			if round > 1000 {
				t.Fatalf("tasks %v have not ended", m.open)
			}
			for _, task := range m.s.Tasks() {
				if task.Phase == model.Launching {
					f := model.Fault{Scope: model.ScopeUnknown, Cause: "unknown"}
					m.step(t, model.Exited{At: m.now, Task: task.ID, Attempt: m.tries[task.ID], Class: model.ExitInfrastructure, Fault: &f})
				}
			}
			if m.s.CanaryDue() {
				ev := model.CanaryEnded{At: m.now, Outcome: model.CanaryStarted}
				if !works {
					ev.Outcome = model.CanaryFailed
				}
				m.step(t, ev)
			}
			if paused := m.s.breakers.Save().Sick.Paused(); works && paused || !works && !paused {
				t.Fatalf("the engine works: %v, launching pauses: %v", works, paused)
			}
			m.sleep(t)
		}
		for id, phase := range m.ended {
			if !works || phase != model.Failed {
				t.Fatalf("the engine works: %v, task %d is %s", works, id, phase)
			}
		}
	})
}

// TestWitnesses checks that a task that failed although the canary started does not count
// against the engine, and that canaries are started at most as often as probe launches.
func TestWitnesses(t *testing.T) {
	w := newWorld(t, plain(), 4)
	bob, alice := w.submit(units.GiB, by("bob")), w.submit(units.GiB, by("alice"))
	w.noStartUnknown(bob)
	w.canary(model.CanaryStarted)
	began := w.now
	w.wait(w.s.NextProbe() - time.Millisecond)
	w.noStartUnknown(alice)
	if w.s.CanaryDue() {
		t.Error("the next canary is due at once")
	}
	w.wakeAt()
	if !w.s.CanaryDue() || w.now.Sub(began) != w.s.NextProbe() {
		t.Errorf("canary due: %v, %s after the last one", w.s.CanaryDue(), w.now.Sub(began))
	}
	w.noStartUnknown(bob)
	if w.s.breakers.Save().Sick != nil || len(w.s.breakers.Save().Complaints.Tasks) != 2 {
		t.Errorf("the engine is blamed: %+v, %+v", w.s.breakers.Save().Sick, w.s.breakers.Save().Complaints)
	}
}

// TestFailingCanaryOutlivesTasks checks that, while the canary fails, the breaker stays open
// after the complaining tasks have ended. The start of the canary closes it.
func TestFailingCanaryOutlivesTasks(t *testing.T) {
	w := newWorld(t, plain(), 4)
	id := w.submit(units.GiB, by("bob"))
	w.noStartUnknown(id)
	w.canary(model.CanaryFailed)
	w.cancel(id)
	if sick := w.s.Breakers(); len(sick) != 1 || !sick[0].Paused {
		t.Fatalf("%+v", sick)
	}
	for !w.s.CanaryDue() {
		w.wakeAt()
	}
	w.canary(model.CanaryStarted)
	if len(w.s.Breakers()) != 0 {
		t.Errorf("%+v", w.s.Breakers())
	}
}

// TestCauseOfFailingCanary checks that, while the canary fails, its message is shown as the
// cause, even after the probe launch of a task has failed.
func TestCauseOfFailingCanary(t *testing.T) {
	w := newWorld(t, plain(), 2)
	first := w.submit(units.GiB, nil)
	w.noStartUnknown(first)
	w.canary(model.CanaryFailed)
	cause := w.s.breakers.Save().Sick.Fault.Cause
	for range 20 { // a probe launch and further canaries follow
		if w.s.CanaryDue() {
			w.canary(model.CanaryFailed)
		}
		if w.task(first).Phase == model.Launching {
			w.noStartUnknown(first)
			if got := w.s.breakers.Save().Sick.Fault.Cause; got != cause {
				t.Errorf("the cause is %q after a test launch, was %q", got, cause)
			}
			return
		}
		w.wakeAt()
	}
	t.Error("there was no test launch")
}

// TestBackoffLetsOthersPass checks that a task in back-off after the canary has started
// no longer counts for the look-ahead, so the next task is tried at once.
func TestBackoffLetsOthersPass(t *testing.T) {
	opt := plain()
	opt.LookAhead = 1
	w := newWorld(t, opt, 1)
	fails := w.submit(30*units.GiB, nil)
	urgent := w.submit(30*units.GiB, high)
	w.noStartUnknown(fails)
	w.wantOn(urgent, 0)
	w.wait(time.Minute)
	small := w.submit(5*units.GiB, low)
	w.wantOn(small) // behind a task that does not fit
	w.canary(model.CanaryStarted)
	if w.task(fails).NotBefore <= w.now {
		t.Fatalf("%+v is not put off", w.task(fails))
	}
	w.wantOn(small, 0)
}
