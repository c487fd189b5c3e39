package mapper

import (
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/ledger"
	"carma/mapper/model"
	"carma/mapper/preempt"
)

// wayState returns a state of GPUs of 40 GiB on which tasks can be suspended. Each has a task
// of 30 GiB and normal priority that has run for some time: tasks 1 to n.
func wayState(t *testing.T, gpus int, host units.Bytes) (*State, units.Instant) {
	t.Helper()
	opt := DefaultsOf("magm")
	opt.MakeWay, opt.WarmUp, opt.Interval = true, 0, 0
	s := New(opt)
	infos := make([]model.GPUInfo, gpus)
	for i := range infos {
		infos[i] = model.GPUInfo{ID: model.GPUID(rune('a' + i)), Index: i, Model: "A100", Capacity: 40 * units.GiB, Suspend: model.SuspendMove}
	}
	now := units.Instant(time.Hour)
	s.Step(model.GPUsFound{At: now, GPUs: infos})
	s.Step(model.HostsFound{At: now, Hosts: []model.HostInfo{{Total: host, Memory: host}}})
	for i := range gpus {
		wayTask(s, now, model.Request{ID: model.TaskID(i + 1), GPUs: 1}, 30)
		s.Step(model.Started{At: now, Task: model.TaskID(i + 1), Attempt: 1})
	}
	return s, now.Add(preempt.PreemptibleAfter)
}

// wayTask submits a task that needs gib GiB, and returns the decisions.
func wayTask(s *State, at units.Instant, r model.Request, gib units.Bytes) []model.Decision {
	r.HostReserve = units.GiB
	s.Step(model.TaskSubmitted{At: at, Request: r})
	return s.Step(model.Estimated{At: at, Task: r.ID, Estimate: model.Estimate{Memory: gib * units.GiB}})
}

// left returns the tasks that some decisions suspend.
func left(decisions []model.Decision) (ids []model.TaskID) {
	for _, d := range decisions {
		if d, ok := d.(model.Suspend); ok {
			ids = append(ids, d.Task)
		}
	}
	return ids
}

func TestWhoMakesWay(t *testing.T) {
	const plenty = 500 * units.GiB
	for _, c := range []struct {
		name   string
		r      model.Request
		gib    units.Bytes
		host   units.Bytes
		before func(s *State, at units.Instant)
		want   int
	}{
		{"a higher priority", model.Request{GPUs: 1, Priority: model.High}, 30, plenty, nil, 1},
		{"a terminal of the same priority", model.Request{GPUs: 1, Terminal: true}, 30, plenty, nil, 1},
		{"the same priority", model.Request{GPUs: 1}, 30, plenty, nil, 0},
		{"a terminal of lower priority", model.Request{GPUs: 1, Priority: model.Low, Terminal: true}, 30, plenty, nil, 0},
		{"two GPUs", model.Request{GPUs: 2, Priority: model.High}, 30, plenty, nil, 2},
		{"room beside", model.Request{GPUs: 1, Priority: model.High}, 5, plenty, nil, 0},
		{"no host memory", model.Request{GPUs: 1, Priority: model.High}, 30, 20 * units.GiB, nil, 0},
		{"a GPU is closed", model.Request{GPUs: 2, Priority: model.High}, 30, plenty, func(s *State, at units.Instant) {
			s.Step(model.GPUsCordoned{At: at, GPUs: []model.GPUID{"a"}, Closure: &model.Cordon{}})
		}, 0},
		{"one ends already", model.Request{GPUs: 1, Priority: model.High}, 30, plenty, func(s *State, at units.Instant) { s.Step(model.Cancel{At: at, Task: 1}) }, 0},
	} {
		s, at := wayState(t, 2, c.host)
		if c.before != nil {
			c.before(s, at)
		}
		c.r.ID = 3
		ids := left(wayTask(s, at, c.r, c.gib))
		if len(ids) != c.want {
			t.Errorf("%s: %v make way, want %d", c.name, ids, c.want)
		}
		if err := s.sound(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestJustStarted checks that a task becomes preemptible after it has run for some time, and is
// preempted at that time.
func TestJustStarted(t *testing.T) {
	s, at := wayState(t, 1, 500*units.GiB)
	if ids := left(wayTask(s, at.Add(-time.Second), model.Request{ID: 2, GPUs: 1, Priority: model.High}, 30)); len(ids) != 0 {
		t.Errorf("%v has just started and makes way", ids)
	}
	if wake, ok := s.NextTimer(); !ok || wake != at {
		t.Fatalf("looks again at %d, want %d", wake, at)
	}
	if ids := left(s.Step(model.TimerFired{At: at})); len(ids) != 1 {
		t.Errorf("%v make way after %s", ids, preempt.PreemptibleAfter)
	}
}

// TestClaims checks that two urgent tasks get a GPU each, whichever is vacated first, and
// that the nomination of a GPU ends when no task is being suspended there.
func TestClaims(t *testing.T) {
	s, at := wayState(t, 2, 500*units.GiB)
	first, second := left(wayTask(s, at, model.Request{ID: 3, GPUs: 1, Priority: model.High}, 30)), left(wayTask(s, at, model.Request{ID: 4, GPUs: 1, Priority: model.High}, 30))
	if len(first) != 1 || len(second) != 1 || first[0] == second[0] {
		t.Fatalf("%v and %v make way", first, second)
	}
	for _, d := range s.Step(model.SuspendDone{At: at, Task: second[0], Attempt: 1}) {
		if l, ok := d.(model.Launch); ok && l.Task != 4 {
			t.Errorf("%+v on a GPU that was left for task 4", l)
		}
	}
	if ids := left(s.Step(model.SuspendDone{At: at, Task: first[0], Attempt: 1, Failure: "no"})); len(ids) != 0 {
		t.Errorf("%v make way at once again", ids)
	}
	if s.IsNominated(s.TaskByID(3)) || len(left(s.Step(model.TimerFired{At: at.Add(preempt.PreemptRetry)}))) != 0 {
		t.Error("a GPU is kept that nobody leaves, or one that cannot be suspended is to leave it again")
	}
}

// TestSuspendedPreempts checks that a suspended task preempts others only after some time, and never
// tasks that were suspended for longer.
func TestSuspendedPreempts(t *testing.T) {
	s, at := wayState(t, 1, 500*units.GiB)
	wayTask(s, at, model.Request{ID: 2, GPUs: 1, Priority: model.High}, 12)
	s.Step(model.SuspendDone{At: at, Task: 1, Attempt: 1})
	s.Step(model.Started{At: at, Task: 2, Attempt: 1})
	wayTask(s, at, model.Request{ID: 3, GPUs: 1}, 20)
	s.Step(model.Started{At: at, Task: 3, Attempt: 1})
	s.Step(model.Exited{At: at.Add(time.Minute), Task: 2, Attempt: 1, Class: model.ExitOK})
	if ids := left(s.Step(model.TimerFired{At: at.Add(ledger.SuspendedTooLongAfter - 1)})); len(ids) != 0 {
		t.Errorf("%v make way too early", ids)
	}
	if ids := left(s.Step(model.TimerFired{At: at.Add(ledger.SuspendedTooLongAfter)})); len(ids) != 1 || ids[0] != 3 {
		t.Errorf("%v make way, want task 3", ids)
	}
	s.Step(model.SuspendDone{At: at.Add(ledger.SuspendedTooLongAfter), Task: 3, Attempt: 1})
	s.Step(model.Resumed{At: at.Add(ledger.SuspendedTooLongAfter), Task: 1, Attempt: 1})
	if ids := left(s.Step(model.TimerFired{At: at.Add(2*ledger.SuspendedTooLongAfter - 1)})); len(ids) != 0 {
		t.Errorf("%v make way for task 3, which was away for less time", ids)
	}
}

// TestLentAtOnce checks that a task that waits for host memory starts as soon as another task
// begins to be suspended and lends some of its memory.
func TestLentAtOnce(t *testing.T) {
	s, at := wayState(t, 0, 128*units.GiB)
	s.Step(model.GPUsFound{At: at, GPUs: []model.GPUInfo{{ID: "a", Model: "A100", Capacity: 40 * units.GiB, Suspend: model.SuspendHere}}})
	s.Step(model.TaskSubmitted{At: at, Request: model.Request{ID: 1, GPUs: 1}})
	s.Step(model.Estimated{At: at, Task: 1, Estimate: model.Estimate{Memory: 30 * units.GiB}})
	s.Step(model.Started{At: at, Task: 1, Attempt: 1})
	s.Step(model.Sampled{At: at, GPUs: []model.GPUSample{{ID: "a", Used: units.GiB, Tasks: []model.TaskUse{{Task: 1, Used: units.GiB}}}}, Hosts: []model.HostSample{{Tasks: []model.HostUse{{Task: 1, Used: 10 * units.GiB}}}}})
	s.Step(model.TaskSubmitted{At: at, Request: model.Request{ID: 2, NoGPU: true, HostReserve: 80 * units.GiB}})
	s.Step(model.Estimated{At: at, Task: 2})
	if task, _ := s.Task(2); task.Phase != model.Queued {
		t.Fatalf("task 2 is %s beside %+v", task.Phase, s.Hosts())
	}
	s.Step(model.SuspendAsked{At: at, Task: 1})
	if task, _ := s.Task(2); task.Phase != model.Launching {
		t.Errorf("task 2 is %s beside %+v", task.Phase, s.Hosts())
	}
}

// TestLends checks, on a server with one GPU, that most host memory is allocated to a task
// without a request. While suspended it lends the memory that no sample has shown in use, and
// gets it back when it resumes. A task with a request keeps its allocation, so that no task is
// suspended for it.
func TestLends(t *testing.T) {
	for _, asked := range []bool{false, true} {
		s, at := wayState(t, 0, 128*units.GiB)
		s.Step(model.GPUsFound{At: at, GPUs: []model.GPUInfo{{ID: "a", Model: "A100", Capacity: 40 * units.GiB, Suspend: model.SuspendHere}}})
		step := func(ev model.Event) []model.Decision {
			t.Helper()
			out := s.Step(ev)
			if err := s.sound(); err != nil {
				t.Fatal(err)
			}
			return out
		}
		begin := func(id model.TaskID, r model.Request) []model.Decision {
			r.ID, r.GPUs = id, 1
			step(model.TaskSubmitted{At: at, Request: r})
			return step(model.Estimated{At: at, Task: id, Estimate: model.Estimate{Memory: 30 * units.GiB}})
		}
		first := model.Request{}
		if asked {
			first.HostMem = 72 * units.GiB
		}
		begin(1, first)
		step(model.Started{At: at, Task: 1, Attempt: 1})
		at = at.Add(preempt.PreemptibleAfter)
		step(model.Sampled{At: at, GPUs: []model.GPUSample{{ID: "a", Used: 25 * units.GiB, Tasks: []model.TaskUse{{Task: 1, Used: 25 * units.GiB}}}}, Hosts: []model.HostSample{{Tasks: []model.HostUse{{Task: 1, Used: 10 * units.GiB}}}}})
		if got := left(begin(2, model.Request{Priority: model.High})); (len(got) == 1) == asked {
			t.Fatalf("asked %v: suspended %v", asked, got)
		}
		if asked {
			continue
		}
		booked := func(when string, want units.Bytes) {
			t.Helper()
			if h := s.Hosts()[0]; h.Booked != want*units.GiB {
				t.Errorf("%s: %s booked, want %d GiB", when, h.Booked, want)
			}
		}
		booked("suspending", 10+25)
		step(model.SuspendDone{At: at, Task: 1, Attempt: 1})
		step(model.Started{At: at, Task: 2, Attempt: 1})
		booked("away", 10+25+72)
		step(model.Exited{At: at.Add(time.Hour), Task: 2, Attempt: 1, Class: model.ExitOK})
		step(model.Resumed{At: at.Add(time.Hour), Task: 1, Attempt: 1})
		booked("back", 72)
	}
}

// TestStoppedWhileItLeaves checks that the forecast of a GPU is computed again when a
// task that was being suspended there is stopped, equal to the forecast of a restored
// state.
func TestStoppedWhileItLeaves(t *testing.T) {
	s, at := wayState(t, 1, 500*units.GiB)
	s.Step(model.SuspendAsked{At: at, Task: 1})
	g := s.GPUList()[0]
	if n := len(s.placer.Forecasts(g)); n != 0 {
		t.Fatalf("%d tasks count while one is being suspended", n)
	}
	s.Step(model.Cancel{At: at, Task: 1})
	if c := s.Clone(); len(s.placer.Forecasts(g)) != len(c.placer.Forecasts(c.GPUList()[0])) {
		t.Errorf("%d tasks count, and %d in a clone", len(s.placer.Forecasts(g)), len(c.placer.Forecasts(c.GPUList()[0])))
	}
}
