package sim

import (
	"math"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper"
	"carma/mapper/model"
)

var fiveGB = Suspending{Rate: 5 * units.GiB, Pause: SuspendPause, Host: SuspendHost}

// suspendedOnce replays tasks and suspends the first from an instant for some time.
func suspendedOnce(t *testing.T, cfg Config, tasks []*Task, after, away time.Duration) *engine {
	t.Helper()
	e := newEngine(cfg, tasks)
	from := e.start.Add(after)
	asked, back := false, false
	for e.finished < len(tasks) {
		switch {
		case !asked && e.agenda[0].at > from:
			asked, e.now = true, from
			e.step(model.SuspendAsked{At: from, Task: 1})
		case !back && e.agenda[0].at > from.Add(away):
			back, e.now = true, from.Add(away)
			e.step(model.ResumeAsked{At: e.now, Task: 1})
		default:
			e.next()
		}
	}
	for _, d := range e.devices {
		d.advance(e.now)
	}
	return e
}

// TestSuspended checks that a task is halted from the decision until its memory is back,
// and then continues where it was. Its memory is on the GPU while it is copied, and its
// load is not.
func TestSuspended(t *testing.T) {
	task := training(0, time.Hour, 20*units.GiB, small)
	cfg := audited(t, Config{Options: options("magm"), GPUs: station(1), StartUp: time.Second, Suspending: fiveGB, Timeline: true})
	e := suspendedOnce(t, cfg, []*Task{&task}, 20*time.Minute, 10*time.Minute)
	r := e.results[0].Record
	if len(r.Attempts) != 1 || len(r.Stretches) != 1 || !r.Succeeded {
		t.Fatalf("%+v", r)
	}
	copy := 4*time.Second + SuspendPause // 20 GiB in one direction
	away := 10*time.Minute + copy        // resumption asked for after 10 minutes
	if s := r.Stretches[0]; s.Copied != 2*copy || s.To.Sub(s.From) != away {
		t.Errorf("copied for %s, away for %s, want %s and %s", s.Copied, s.To.Sub(s.From), 2*copy, away)
	}
	l := r.Lifetimes() // up to the nanoseconds of a sum of floats
	l.JCT, l.Execution = l.JCT.Round(time.Microsecond), l.Execution.Round(time.Microsecond)
	if want := (Lifetimes{JCT: time.Hour + away + time.Second, Execution: time.Hour, Away: away, Waiting: time.Second}); l != want {
		t.Errorf("%+v, want %+v", l, want)
	}
	if s := r.Slowdown(); math.Abs(s-1) > 1e-9 {
		t.Errorf("slowed down %v times", s)
	}
	if s, want := r.Stretched(), 1+away.Hours(); math.Abs(s-want) > 1e-9 {
		t.Errorf("from start to end %v times as long as alone, want %v", s, want)
	}
	g := e.record.done(e.now).GPUs[0]
	from := e.start.Add(20 * time.Minute)
	for _, p := range []struct {
		what        string
		at          units.Instant
		used, smact bool
	}{
		{"before", from.Add(-time.Second), true, true}, {"while it is copied", from.Add(copy / 2), true, false}, {"after", from.Add(copy + time.Second), false, false},
		{"while it is copied back", from.Add(away - copy/2), true, false}, {"when it is back", from.Add(away + time.Second), true, true},
	} {
		if used, smact := g.Used.At(p.at) > 0, g.SMACT.At(p.at) > 0; used != p.used || smact != p.smact {
			t.Errorf("%s: memory in use: %v, load: %v", p.what, used, smact)
		}
	}
	m := e.metrics()
	if m.Suspends != 1 || m.LongestAway != away || m.P95Away != away || m.Copies != 2*copy {
		t.Errorf("%+v", m.Summary)
	}
	if all := e.results[0].EnergyJ + m.IdleJ; math.Abs(all-m.EnergyJ) > 1e-6*all || m.IdleJ < 500*cfg.GPUs[0].IdlePower {
		t.Errorf("%v J of the task and %v J of an idle GPU are not %v J", e.results[0].EnergyJ, m.IdleJ, m.EnergyJ)
	}
	if spans := e.record.timeline.Spans; len(spans) != 2 || spans[0].Outcome != OutcomeAway || spans[1].Outcome != OutcomeOK || spans[0].Ended != from.Add(copy) {
		t.Errorf("%+v", spans)
	}
}

// TestNeighbourOfSuspended checks that a neighbour has the GPU alone meanwhile.
func TestNeighbourOfSuspended(t *testing.T) {
	with := func(away time.Duration) time.Duration {
		a, b := training(0, time.Hour, 10*units.GiB, vgg128), training(0, time.Hour, 10*units.GiB, vgg128)
		cfg := audited(t, Config{Options: options("magm"), GPUs: station(1), Suspending: fiveGB})
		cfg.Options.SMACTCap = 0
		e := suspendedOnce(t, cfg, []*Task{&a, &b}, 20*time.Minute, away)
		return e.results[1].Record.Lifetimes().Execution
	}
	short, long := with(time.Minute), with(30*time.Minute)
	if long >= short-5*time.Minute {
		t.Errorf("a neighbour took %s with the other away for a minute, %s with half an hour", short, long)
	}
}

// TestNoRoomToReturn checks that a task whose GPU has less room than assumed stays
// suspended and resumes later.
func TestNoRoomToReturn(t *testing.T) {
	a, b := training(0, time.Hour, 25*units.GiB, small), training(21*time.Minute, 30*time.Minute, 30*units.GiB, small)
	b.Estimate.Memory = 10 * units.GiB // it takes more than it was granted
	cfg := audited(t, Config{Options: options("magm"), GPUs: station(1), Suspending: fiveGB})
	cfg.Options.Watchdog, cfg.Options.SMACTCap, cfg.Options.WarmUp = model.WatchdogOff, 0, 0
	audit, failed := cfg.Observe, 0
	cfg.Observe = func(s *mapper.State, ev model.Event, done []model.Decision) {
		if r, ok := ev.(model.Resumed); ok && r.Failure != "" {
			failed++
		}
		audit(s, ev, done)
	}
	e := suspendedOnce(t, cfg, []*Task{&a, &b}, 20*time.Minute, 72900*time.Millisecond) // it has just grown
	if failed == 0 {
		t.Error("it came back beside a task that had taken its room")
	}
	if r := e.results[0].Record; !r.Succeeded || len(r.Attempts) != 1 || r.Lifetimes().Away < 25*time.Minute || !e.results[1].Record.Succeeded {
		t.Errorf("%+v", r)
	}
}

// TestStoppedWhileSuspended checks that suspended time does not count for a time limit,
// and that a cancelled suspended task ends.
func TestStoppedWhileSuspended(t *testing.T) {
	task := training(0, time.Hour, 20*units.GiB, small)
	e := newEngine(Config{Options: options("magm"), GPUs: station(1), Suspending: fiveGB}, []*Task{&task})
	for e.now < e.start.Add(10*time.Minute) {
		e.next()
		if e.now == e.start.Add(8*time.Second) {
			e.step(model.SuspendAsked{At: e.now, Task: 1})
			break
		}
	}
	e.next()
	e.now = e.start.Add(time.Minute)
	e.step(model.Cancel{At: e.now, Task: 1})
	for e.finished == 0 {
		e.next()
	}
	r := e.results[0]
	if r.Phase != model.Cancelled || len(r.Record.Stretches) != 1 || r.Record.Stretches[0].To != e.start.Add(time.Minute) || e.devices[0].held != 0 {
		t.Errorf("%+v", r)
	}
}
