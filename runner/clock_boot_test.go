package runner

import (
	"testing"
	"time"

	"carma/internal/units"
	"carma/runner/api"
	"carma/runner/clock"
	"carma/runner/doctor"
	"carma/runner/loop"
	"carma/runner/record"
)

// TestClockSet: a wall clock that is set back or forward across a restart
// neither stops the daemon's time nor ends a task early (finding F8).
func TestClockSet(t *testing.T) {
	const limit = time.Hour
	for name, c := range map[string]struct {
		wall, passed time.Duration // elapsed time by the wall clock and by the kernel
		booted       bool
		want         time.Duration // elapsed daemon time
	}{
		"set back":               {-24 * time.Hour, time.Minute, false, 0},
		"set back, booted":       {-24 * time.Hour, time.Minute, true, 0},
		"set forward":            {24 * time.Hour, 5 * time.Minute, false, 5 * time.Minute},
		"set forward, booted":    {24 * time.Hour, 5 * time.Minute, true, 24 * time.Hour},
		"stopped for half a day": {12 * time.Hour, 12 * time.Hour, false, 12 * time.Hour},
	} {
		g := newRig(t)
		p := g.gated("train")
		g.running(g.run(api.Submit{Image: "train", Mem: int64(units.GiB), TimeLimit: limit}))
		g.stop()
		last := g.loop.State().Now()
		then, err := g.lastStartOf()
		if err != nil || then == nil || then.Boot == "" {
			t.Fatalf("%s: the last start: %+v, %v", name, then, err)
		}
		r := &Runner{Deps: g.Runner.Deps, opt: g.opt}
		r.Journal = g.reopened()
		wall := last.Time().Add(c.wall)
		r.Clock = clock.NewFrom(func() time.Time { return wall }, 1)
		r.loop = loop.New(t.Context(), r.Journal, record.NewStore(), r.Clock, r.Log, r.opt.Mapper, nil)
		if err := r.loop.Load(); err != nil {
			t.Fatal(err)
		}
		up := clock.Uptime{Boot: then.Boot, Since: then.Since + last.Sub(then.At) + c.passed}
		if c.booted {
			up.Boot = "another"
		}
		if err := r.restoreClock(up); err != nil {
			t.Fatal(err)
		}
		if got := r.Clock.Now().Sub(last); (got - c.want).Abs() > time.Second {
			t.Errorf("%s: %s have passed, want %s", name, got, c.want)
		}
		if warned := doctor.CheckClock(r.Clock).Status == "warning"; warned != (c.wall != c.want) {
			t.Errorf("%s: doctor says %+v", name, doctor.CheckClock(r.Clock))
		}
		wall = wall.Add(90 * time.Second)
		if got := r.Clock.Now().Sub(last); (got - c.want - 90*time.Second).Abs() > time.Second {
			t.Errorf("%s: 90 s later %s have passed", name, got)
		}
		close(p.gate)
		if err := r.Journal.Close(); err != nil {
			t.Error(err)
		}
	}
}
