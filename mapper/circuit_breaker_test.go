package mapper

import (
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/breaker"
	"carma/mapper/ledger"
	"carma/mapper/model"
)

// noStart fails the start of a launched task through a fault of the engine.
func (w *world) noStart(id model.TaskID) []model.Launch {
	w.t.Helper()
	return w.noStartBy(id, model.Fault{Scope: model.ScopeEngine, Cause: "the bridge docker0 is gone", Remedy: "systemctl restart docker"})
}

func (w *world) noStartBy(id model.TaskID, f model.Fault) []model.Launch {
	w.t.Helper()
	return w.exitWith(model.Exited{Task: id, Class: model.ExitInfrastructure, Code: 125, Message: f.Cause, Fault: &f})
}

// TestSickEngineCostsNothing checks R4. Launching on an engine that starts nothing pauses after
// failed starts of three tasks; from then on one task at a time is tried at growing intervals,
// without an end, and the first start closes the breaker.
func TestSickEngineCostsNothing(t *testing.T) {
	w := newWorld(t, plain(), 4)
	var ids []model.TaskID
	for range 8 {
		ids = append(ids, w.submit(30*units.GiB, nil))
	}
	for _, id := range ids[:6] { // two more were launched before the third had failed
		w.noStart(id)
	}
	if sick := w.s.Breakers(); len(sick) != 1 || !sick[0].Paused || sick[0].Remedy == "" || sick[0].Failures != 6 {
		t.Fatalf("sick: %+v", sick)
	}
	why, _ := w.s.Why(ids[7])
	want := model.Reason{Code: model.ReasonEngineSick, Text: "the bridge docker0 is gone", Remedy: "systemctl restart docker", Span: 5 * time.Second}
	if why.Binding != want {
		t.Errorf("why: %+v", why.Binding)
	}
	var gaps []time.Duration
	last := w.now
	for range 500 { // over a day
		at, ok := w.s.NextTimer()
		if !ok {
			t.Fatal("no test launch is due")
		}
		w.now = max(w.now, at)
		if l := w.step(model.TimerFired{At: w.now}); len(l) > 1 {
			t.Fatalf("%d test launches at once", len(l))
		} else if len(l) == 1 {
			gaps = append(gaps, w.now.Sub(last))
			last = w.now
			w.noStart(l[0].Task)
		}
	}
	for i, gap := range gaps {
		if want := min(w.s.NextProbe()<<min(i, 10), ledger.MaxProbeInterval); gap != want {
			t.Fatalf("test launch %d came after %s, want %s", i, gap, want)
		}
	}
	tested := map[model.TaskID]bool{}
	for _, l := range w.launches {
		tested[l.Task] = true
	}
	if len(tested) != len(ids) {
		t.Errorf("only tasks %v were tried", tested)
	}
	for _, task := range w.s.Tasks() {
		if len(task.Attempts) > 1 || task.NotAtFault != 0 || task.StartFailuresWhileOthersStart != 0 || task.Phase != model.Queued {
			t.Errorf("task %d: %d attempts, %d blameless, %d strikes, %s", task.ID, len(task.Attempts), task.NotAtFault, task.StartFailuresWhileOthersStart, task.Phase)
		}
	}
	w.wait(ledger.MaxProbeInterval)
	test := w.launches[len(w.launches)-1]
	w.started(test.Task)
	if len(w.s.Breakers()) != 0 {
		t.Errorf("still sick: %+v", w.s.Breakers())
	}
	placed := 0
	for _, task := range w.s.Tasks() {
		if task.Phase.Placed() {
			placed++
		}
		if task.StartFailuresWhileOthersStart > 1 {
			t.Errorf("task %d: %d strikes for one outage", task.ID, task.StartFailuresWhileOthersStart)
		}
	}
	if placed != 4 {
		t.Errorf("%d tasks run at once after the recovery, want 4", placed)
	}
}

// TestSickKeepsPlaces checks that a task that could not start returns to its place,
// before later tasks, with its age.
func TestSickKeepsPlaces(t *testing.T) {
	w := newWorld(t, plain(), 1)
	a, b := w.submit(30*units.GiB, nil), w.submit(30*units.GiB, nil)
	blocked, _ := w.s.Task(b)
	if blocked.BlockedAt == 0 {
		t.Fatal("b does not age")
	}
	aged := blocked.BlockedAt
	w.cancel(a)
	w.exit(a, model.ExitStopped)
	for range 3 {
		w.noStart(b)
		w.wait(ledger.MaxProbeInterval)
	}
	w.noStart(b)
	task, _ := w.s.Task(b)
	if task.Phase != model.Queued || task.BlockedAt != aged || len(task.Attempts) != 1 || task.Attempts[0].N != 4 || task.Attempts[0].Starts != 4 {
		t.Errorf("%s, blocked at %d (was %d), attempts %+v", task.Phase, task.BlockedAt, aged, task.Attempts)
	}
	if err := w.s.sound(); err != nil {
		t.Error(err)
	}
}

// TestOneTaskThatCannotStart checks that, if others start, the task fails after the configured
// number of relaunches, and that no other task waits for it.
func TestOneTaskThatCannotStart(t *testing.T) {
	w := newWorld(t, plain(), 4)
	bad := w.submit(units.GiB, nil)
	for n := 0; ; n++ {
		w.noStart(bad)
		if end, over := w.finished[bad]; over {
			if end.Phase != model.Failed || n != w.s.Options().BlamelessRetries+1 {
				t.Errorf("%s after %d others had started: %s", end.Phase, n, say(end.Reason))
			}
			return
		}
		good := w.submit(units.GiB, nil)
		if w.on(good) == nil {
			t.Fatalf("task %d waits for one that cannot start", good)
		}
		w.started(good)
		w.exit(good, model.ExitOK)
		w.wait(ledger.MaxProbeInterval)
		if n > 20 {
			t.Fatal("it never fails")
		}
	}
}

// TestAloneWithASickEngine checks that the only waiting task is tried at growing
// intervals, never fails, and the engine is reported as unhealthy after three starts.
func TestAloneWithASickEngine(t *testing.T) {
	w := newWorld(t, plain(), 1)
	id := w.submit(units.GiB, nil)
	for range 100 {
		w.noStart(id)
		w.wait(ledger.MaxProbeInterval)
	}
	if sick := w.s.Breakers(); len(sick) != 1 || sick[0].Failures != 100 {
		t.Errorf("sick: %+v", sick)
	}
	w.noStart(id)
	if l := w.step(model.EngineChanged{At: w.now, Up: true}); len(l) != 1 { // the engine was restarted
		t.Errorf("launches after the engine's restart: %+v", l)
	}
	w.started(id)
	w.exit(id, model.ExitOK)
	if w.finished[id].Phase != model.Succeeded {
		t.Errorf("%+v", w.finished[id])
	}
}

// TestOnlyGPUIsSick checks that, if no other GPU is large enough, tasks wait for the
// probe of an unhealthy one, and start when it is due, by time alone.
func TestOnlyGPUIsSick(t *testing.T) {
	w := newWorld(t, plain(), 1)
	for range breaker.SickTasks {
		w.submit(30*units.GiB, nil)
	}
	for range breaker.SickTasks {
		w.noStartBy(w.launches[len(w.launches)-1].Task, model.Fault{Scope: model.ScopeGPU, Cause: "the device node /dev/nvidia0 is missing"})
	}
	if sick := w.s.Breakers(); len(sick) != 1 || !sick[0].Paused {
		t.Fatalf("sick: %+v", sick)
	}
	if tests := w.wait(w.s.NextProbe()); len(tests) != 1 {
		t.Fatalf("test launches: %+v", tests)
	}
}

// TestSickGPU checks R6: the breaker of a GPU with a missing device node opens after failed
// starts of three tasks; these tasks run elsewhere, and then one probe at a time is launched.
func TestSickGPU(t *testing.T) {
	w := newWorld(t, plain(), 2)
	broken := model.Fault{Scope: model.ScopeGPU, Cause: "the device node /dev/nvidia0 is missing", GPUs: []model.GPUID{gpuID(0)}}
	var others []model.TaskID
	for len(w.s.Breakers()) == 0 {
		id := w.submit(30*units.GiB, nil)
		if at := w.on(id); len(at) == 1 && at[0] == 0 {
			w.noStartBy(id, broken)
		}
		if others = append(others, id); len(others) > 20 {
			t.Fatal("it never closes")
		}
		for _, id := range others {
			if at := w.on(id); len(at) == 1 && at[0] == 1 {
				w.started(id)
				w.exit(id, model.ExitOK)
			}
		}
	}
	sick := w.s.Breakers()[0]
	if sick.GPU != gpuID(0) || !sick.Paused || sick.Failures < 3 {
		t.Errorf("sick: %+v", sick)
	}
	id := w.submit(30*units.GiB, nil)
	x := w.submit(30*units.GiB, nil)
	if at := w.on(id); len(at) != 1 || at[0] != 1 {
		t.Errorf("on %v, want GPU 1", at)
	}
	why, _ := w.s.Why(x)
	if len(why.Rejected) != 2 || why.Rejected[0].Rule != model.RuleSick {
		t.Errorf("why: %+v", why)
	}
	tests := w.wait(w.s.NextProbe())
	if len(tests) != 1 || tests[0].Grants[0].GPU != gpuID(0) {
		t.Fatalf("test launches: %+v", tests)
	}
	w.started(tests[0].Task)
	if len(w.s.Breakers()) != 0 {
		t.Errorf("still sick: %+v", w.s.Breakers())
	}
}

// TestTestsSpareTheGood checks that, if many tasks of one user cannot start, the next
// probe is another user's task.
func TestTestsSpareTheGood(t *testing.T) {
	w := newWorld(t, plain(), 4)
	for range 50 {
		w.submit(30*units.GiB, func(r *model.Request) { r.User = "ada" })
	}
	for id := model.TaskID(1); id <= 4; id++ {
		w.noStart(id)
	}
	good := w.submit(30*units.GiB, func(r *model.Request) { r.User = "bob" })
	l := w.wait(w.s.NextProbe())
	if len(l) != 1 || l[0].Task != good {
		t.Errorf("the test is %+v, want task %d", l, good)
	}
}

// TestTestThatTellsNothing checks that another probe follows at once if a probe is stopped or
// fails through its own fault.
func TestTestThatTellsNothing(t *testing.T) {
	w := newWorld(t, plain(), 4)
	for range 6 {
		w.submit(30*units.GiB, nil)
	}
	for id := model.TaskID(1); id <= 4; id++ {
		w.noStart(id)
	}
	first := w.wait(w.s.NextProbe())
	if len(first) != 1 {
		t.Fatalf("tests: %+v", first)
	}
	next := w.exit(first[0].Task, model.ExitCannotStart)
	if len(next) != 1 || next[0].Task == first[0].Task {
		t.Errorf("the next test: %+v", next)
	}
}
