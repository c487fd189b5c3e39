package sim

import (
	"math"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
)

// pausing returns rules that stop or suspend a task that is idle for half an hour.
func pausing(suspends bool) model.Options {
	o := options("magm")
	o.IdleYield, o.SuspendIdle = 30*time.Minute, suspends
	return o
}

// TestPausing checks that an idle task holds its memory, has no activity, and continues
// unchanged after four hours; its measures are relative to its time alone.
func TestPausing(t *testing.T) {
	task := training(0, time.Hour, 20*units.GiB, small)
	cfg := audited(t, Config{Options: options("magm"), GPUs: station(1), StartUp: time.Second, Suspending: fiveGB, Truth: Truth{Idle: 1}, Timeline: true})
	r, err := Run(cfg, []Task{task})
	if err != nil {
		t.Fatal(err)
	}
	one := r.Tasks[0]
	if l := one.Record.Lifetimes(); !one.Pauses || !one.Record.Succeeded || l.JCT.Round(time.Microsecond) != time.Hour+IdleFor+time.Second {
		t.Errorf("%+v", l)
	}
	if s := one.Record.Slowdown(); math.Abs(s-1) > 1e-9 {
		t.Errorf("slowed down %v times", s)
	}
	busy := small.SMACT * (1 - TrainsFrom(3600)/3600)
	if got, want := r.Metrics.MeanSMACT, busy/5; math.Abs(got-want) > want/100 { // one of five hours
		t.Errorf("activity %v, want %v", got, want)
	}
	if m := r.Metrics.MeanMemory; m < 19*units.GiB {
		t.Errorf("%s on the GPU on average", m)
	}
}

// TestPausingMakesWay checks that such a task is ended with idle-yield; with suspend-idle
// it is suspended, and resumes when somebody types.
func TestPausingMakesWay(t *testing.T) {
	tasks := []Task{training(0, time.Hour, 20*units.GiB, small)}
	cfg := audited(t, Config{Options: pausing(false), GPUs: station(1), StartUp: time.Second, Suspending: fiveGB, Truth: Truth{Idle: 1}})
	r, err := Run(cfg, tasks)
	if err != nil {
		t.Fatal(err)
	}
	if one := r.Tasks[0]; one.Record.Succeeded || one.Record.Lifetimes().JCT > 2*time.Hour || r.Metrics.Suspends != 0 {
		t.Errorf("ended: %+v", one)
	}
	cfg.Options = pausing(true)
	if r, err = Run(cfg, tasks); err != nil {
		t.Fatal(err)
	}
	one := r.Tasks[0]
	if l := one.Record.Lifetimes(); !one.Record.Succeeded || r.Metrics.Suspends != 1 || l.Away < IdleFor-45*time.Minute || l.JCT < time.Hour+IdleFor || l.JCT > time.Hour+IdleFor+time.Minute {
		t.Errorf("suspended: %+v, %d times", l, r.Metrics.Suspends)
	}
	if s, x := one.Record.Slowdown(), one.Record.Stretched(); math.Abs(s-1) > 0.01 || math.Abs(x-1) > 0.01 {
		t.Errorf("slowed down %v times, stretched %v", s, x)
	}
}

// TestDrain checks that a drained GPU gets no task, and its tasks end there or are moved.
func TestDrain(t *testing.T) {
	tasks := []Task{training(0, time.Hour, 20*units.GiB, small), training(31*time.Minute, time.Hour, 20*units.GiB, small)}
	drain := Drain{GPU: 0, From: 30 * time.Minute, Until: 2 * time.Hour}
	gpus := station(2)
	gpus[0].Model, gpus[1].Model = "A100", "A100" // a task moves only to a GPU of the same model
	cfg := audited(t, Config{Options: options("magm"), GPUs: gpus, StartUp: time.Second, Suspending: fiveGB, Drain: drain})
	r, err := Run(cfg, tasks)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Metrics.Drained.Round(time.Second); got != 30*time.Minute+time.Second || r.Tasks[1].GPUs[0] != 1 || r.Metrics.Suspends != 0 {
		t.Errorf("empty after %s, the second on %v", got, r.Tasks[1].GPUs)
	}
	cfg.Drain.Move = true
	if r, err = Run(cfg, tasks); err != nil {
		t.Fatal(err)
	}
	if got := r.Metrics.Drained; got > 10*time.Second || r.Metrics.Suspends != 1 || !r.Tasks[0].Record.Succeeded {
		t.Errorf("empty after %s, moved %d times", got, r.Metrics.Suspends)
	}
	for name, wrong := range map[string]Drain{"no such GPU": {GPU: 2, Until: time.Hour}, "the end first": {From: 2 * time.Hour, Until: time.Hour}} {
		cfg.Drain = wrong
		if _, err := Run(cfg, tasks); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}
