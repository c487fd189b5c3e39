package mapper

import (
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/mapper/preempt"
)

// swapState returns a state with a GPU of 40 GiB with a task of 30 GiB that runs for the given
// time.
func swapState(t *testing.T, long time.Duration, change func(*model.Options)) (*State, units.Instant) {
	t.Helper()
	s, _ := wayState(t, 0, 500*units.GiB)
	opt := s.Options()
	opt.MakeWay, opt.SwapShorter, opt.Ageing = false, true, 8*time.Hour
	if change != nil {
		change(&opt)
	}
	now := units.Instant(time.Hour)
	s.Step(model.Configured{At: now, Options: opt, Format: model.DecisionFormat})
	s.Step(model.GPUsFound{At: now, GPUs: []model.GPUInfo{{ID: "a", Model: "A100", Capacity: 40 * units.GiB, Suspend: model.SuspendHere}}})
	timed(s, now, model.Request{ID: 1, GPUs: 1}, 30, long)
	s.Step(model.Started{At: now, Task: 1, Attempt: 1})
	return s, now
}

// timed submits a task with a memory need and a run time, or 0 if not known.
func timed(s *State, at units.Instant, r model.Request, gib units.Bytes, run time.Duration) []model.Decision {
	r.HostReserve = units.GiB
	s.Step(model.TaskSubmitted{At: at, Request: r})
	return s.Step(model.Estimated{At: at, Task: r.ID, Estimate: model.Estimate{Memory: gib * units.GiB}, Expected: model.Expected{RunTime: run}})
}

// tells makes the output of task 1 report its total run time.
func tells(whole time.Duration) func(*State, units.Instant) {
	return func(s *State, _ units.Instant) {
		s.TaskByID(1).Pace.Whole = whole
		s.placer.DropCache()
	}
}

func TestWhoIsSwapped(t *testing.T) {
	const minute = time.Minute
	for _, c := range []struct {
		name   string
		long   time.Duration
		after  time.Duration // time for which it has run
		r      model.Request
		run    time.Duration
		change func(*model.Options)
		before func(s *State, at units.Instant)
		want   int
	}{
		{name: "a short one for a long one", long: 5 * time.Hour, after: preempt.SwappableAfter, run: 6 * minute, want: 1},
		{name: "the option is off", long: 5 * time.Hour, after: preempt.SwappableAfter, run: 6 * minute, change: func(o *model.Options) { o.SwapShorter, o.FillHeld = false, true }},
		{name: "it has just started", long: 5 * time.Hour, after: preempt.SwappableAfter - 1, run: 6 * minute},
		{name: "it ends soon", long: 40 * minute, after: 39 * minute, run: 6 * minute},
		{name: "less is saved than twice what it costs", after: preempt.SwappableAfter, r: model.Request{TimeLimit: 7 * minute}, run: 9 * minute, before: tells(preempt.SwappableAfter + 16*minute)},
		{name: "more is", after: preempt.SwappableAfter, r: model.Request{TimeLimit: 7 * minute}, run: 9 * minute, before: tells(preempt.SwappableAfter + 20*minute), want: 1},
		{name: "not known how long it takes", long: 5 * time.Hour, after: preempt.SwappableAfter},
		{name: "a time limit tells", long: 5 * time.Hour, after: preempt.SwappableAfter, r: model.Request{TimeLimit: 5 * minute}, want: 1},
		{name: "as likely as not longer than half an hour", long: 5 * time.Hour, after: preempt.SwappableAfter, run: 16 * minute},
		{name: "not known how long the other takes", after: preempt.SwappableAfter, run: minute},
		{name: "on two GPUs", long: 5 * time.Hour, after: preempt.SwappableAfter, r: model.Request{GPUs: 2}, run: 6 * minute},
		{name: "of lower priority", long: 5 * time.Hour, after: preempt.SwappableAfter, r: model.Request{Priority: model.Low}, run: 6 * minute},
		{name: "no host memory", long: 5 * time.Hour, after: preempt.SwappableAfter, run: 6 * minute, before: func(s *State, at units.Instant) {
			s.Step(model.HostsFound{At: at, Hosts: []model.HostInfo{{Total: 20 * units.GiB, Memory: 20 * units.GiB}}})
		}},
		{name: "it was away for nearly half of its time", long: 5 * time.Hour, after: preempt.SwappableAfter, run: 2 * minute, before: func(s *State, _ units.Instant) { s.TaskByID(1).Last().SuspendedTime = 148 * minute }},
		{name: "it was away for less", long: 5 * time.Hour, after: preempt.SwappableAfter, run: 2 * minute, before: func(s *State, _ units.Instant) { s.TaskByID(1).Last().SuspendedTime = 144 * minute }, want: 1},
	} {
		s, at := swapState(t, c.long, c.change)
		at = at.Add(c.after)
		if c.before != nil {
			c.before(s, at)
		}
		c.r.ID = 2
		c.r.GPUs = max(c.r.GPUs, 1)
		if ids := left(timed(s, at, c.r, 20, c.run)); len(ids) != c.want {
			t.Errorf("%s: %v make way, want %d", c.name, ids, c.want)
		}
		if err := s.sound(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestSwapWaits checks that a task behind others is expected to wait for a GPU that becomes
// ready after the GPUs of the others.
func TestSwapWaits(t *testing.T) {
	s, at := swapState(t, 0, nil)
	s.Step(model.GPUsFound{At: at, GPUs: []model.GPUInfo{{ID: "a", Capacity: 40 * units.GiB, Suspend: model.SuspendHere}, {ID: "b", Index: 1, Capacity: 40 * units.GiB, Suspend: model.SuspendHere}}})
	timed(s, at, model.Request{ID: 2, GPUs: 1}, 30, 5*time.Hour)
	s.Step(model.Started{At: at, Task: 2, Attempt: 1})
	at = at.Add(preempt.SwappableAfter)
	tells(12*time.Minute)(s, at)
	if ids := left(timed(s, at, model.Request{ID: 3, GPUs: 1}, 30, time.Minute)); len(ids) != 0 {
		t.Errorf("%v make way for the first, for which a GPU is ready soon", ids)
	}
	if ids := left(timed(s, at, model.Request{ID: 4, GPUs: 1}, 30, time.Minute)); len(ids) != 1 || ids[0] != 2 {
		t.Errorf("%v make way for the second, want task 2", ids)
	}
}

// fillState returns a state in which GPU a is with a task of 30 GiB that runs for an hour, and
// GPU b free. Task 2, on several GPUs, waits for both.
func fillState(t *testing.T, pair model.Request, kind model.SuspendKind, host units.Bytes, change func(*model.Options)) (*State, units.Instant) {
	t.Helper()
	s, _ := wayState(t, 0, host)
	opt := s.Options()
	opt.MakeWay, opt.FillHeld, opt.Ageing = false, true, time.Minute
	if change != nil {
		change(&opt)
	}
	now := units.Instant(time.Hour)
	s.Step(model.Configured{At: now, Options: opt, Format: model.DecisionFormat})
	s.Step(model.GPUsFound{At: now, GPUs: []model.GPUInfo{{ID: "a", Capacity: 40 * units.GiB, Suspend: kind}, {ID: "b", Index: 1, Capacity: 40 * units.GiB, Suspend: kind}}})
	timed(s, now, model.Request{ID: 1, GPUs: 1}, 30, time.Hour)
	s.Step(model.Started{At: now, Task: 1, Attempt: 1})
	pair.ID = 2
	timed(s, now, pair, 30, 2*time.Hour)
	now = now.Add(2 * time.Minute)
	s.Step(model.TimerFired{At: now})
	return s, now
}

func launched(decisions []model.Decision) (ids []model.TaskID) {
	for _, d := range decisions {
		if l, ok := d.(model.Launch); ok {
			ids = append(ids, l.Task)
		}
	}
	return ids
}

func TestWhoFills(t *testing.T) {
	pair := model.Request{GPUs: 2}
	for _, c := range []struct {
		name   string
		pair   model.Request
		kind   model.SuspendKind
		host   units.Bytes
		change func(*model.Options)
		r      model.Request
		want   int
	}{
		{"it fills", pair, model.SuspendHere, 500, nil, model.Request{}, 1},
		{"the option is off", pair, model.SuspendHere, 500, func(o *model.Options) { o.FillHeld, o.SwapShorter = false, true }, model.Request{}, 0},
		{"the driver cannot suspend", pair, model.SuspendNever, 500, nil, model.Request{}, 0},
		{"people work in it", pair, model.SuspendHere, 500, nil, model.Request{Terminal: true}, 0},
		{"of lower priority", pair, model.SuspendHere, 500, nil, model.Request{Priority: model.Low}, 1},
		{"too little host memory", pair, model.SuspendHere, 31, nil, model.Request{}, 0},
		{"enough for it and the pair", pair, model.SuspendHere, 34, nil, model.Request{}, 1},
	} {
		s, at := fillState(t, c.pair, c.kind, c.host*units.GiB, c.change)
		if s.reserve.Head().Task != 2 {
			t.Fatalf("%s: GPUs are held for %d", c.name, s.reserve.Head().Task)
		}
		c.r.ID, c.r.GPUs = 3, 1
		got := timed(s, at, c.r, 30, 5*time.Hour)
		if ids := launched(got); len(ids) != c.want {
			t.Errorf("%s: %+v", c.name, got)
		}
		if err := s.sound(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if c.want == 0 {
			continue
		}
		if task := s.TaskByID(3); task.Last().Fills != 2 {
			t.Errorf("%s: it is not marked: %+v", c.name, task.Last())
		}
		s.Step(model.Started{At: at, Task: 3, Attempt: 1})
		s.Step(model.TimerFired{At: at.Add(10 * time.Minute)})
		if s.TaskByID(3).Phase != model.Running {
			t.Errorf("%s: %s while the other GPU is not free", c.name, s.TaskByID(3).Phase)
		}
		if ids := left(s.Step(model.Exited{At: at.Add(10 * time.Minute), Task: 1, Attempt: 1, Class: model.ExitOK})); len(ids) != 1 || ids[0] != 3 {
			t.Errorf("%s: %v make way", c.name, ids)
		}
		if ids := launched(s.Step(model.SuspendDone{At: at.Add(11 * time.Minute), Task: 3, Attempt: 1})); len(ids) != 1 || ids[0] != 2 {
			t.Errorf("%s: %v start then", c.name, ids)
		}
		s.Step(model.Started{At: at.Add(11 * time.Minute), Task: 2, Attempt: 1})
		s.Step(model.Exited{At: at.Add(20 * time.Minute), Task: 2, Attempt: 1, Class: model.ExitOK})
		s.Step(model.Resumed{At: at.Add(20 * time.Minute), Task: 3, Attempt: 1})
		if task := s.TaskByID(3); task.Phase != model.Running || task.Last().Fills != 0 {
			t.Errorf("%s: back, it is %s and fills for %d", c.name, task.Phase, task.Last().Fills)
		}
	}
}

// TestFillsOnceItMay checks that a task that could not backfill a GPU starts when host
// memory suffices, though nothing has changed on the GPUs.
func TestFillsOnceItMay(t *testing.T) {
	s, at := fillState(t, model.Request{GPUs: 2}, model.SuspendHere, 31*units.GiB, nil)
	if ids := launched(timed(s, at, model.Request{ID: 3, GPUs: 1}, 30, 5*time.Hour)); len(ids) > 0 {
		t.Errorf("%v came with too little host memory", ids)
	}
	s.Step(model.TimerFired{At: at})
	if ids := launched(s.Step(model.HostsFound{At: at, Hosts: []model.HostInfo{{Total: 500 * units.GiB, Memory: 500 * units.GiB}}})); len(ids) != 1 || ids[0] != 3 {
		t.Errorf("%v came with enough", ids)
	}
}

// TestCannotFill checks that a backfilling task that could not be suspended continues,
// and that no other backfills.
func TestCannotFill(t *testing.T) {
	s, at := fillState(t, model.Request{GPUs: 2}, model.SuspendHere, 500*units.GiB, nil)
	timed(s, at, model.Request{ID: 3, GPUs: 1}, 12, 5*time.Hour)
	s.Step(model.Started{At: at, Task: 3, Attempt: 1})
	at = at.Add(10 * time.Minute)
	if ids := left(s.Step(model.Exited{At: at, Task: 1, Attempt: 1, Class: model.ExitOK})); len(ids) != 1 {
		t.Fatalf("%v make way", ids)
	}
	s.Step(model.SuspendDone{At: at, Task: 3, Attempt: 1, Failure: "no"})
	if ids := launched(timed(s, at.Add(3*time.Minute), model.Request{ID: 4, GPUs: 1}, 12, 5*time.Hour)); len(ids) != 0 || !s.TaskByID(2).Unfilled {
		t.Errorf("%v fill the GPUs held for one that could not have them", ids)
	}
	if ids := launched(s.Step(model.Exited{At: at.Add(4 * time.Minute), Task: 3, Attempt: 1, Class: model.ExitOK})); len(ids) == 0 || ids[0] != 2 {
		t.Errorf("%v start when all its GPUs are free", ids)
	}
}
