package runner

import (
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/gpu"
	"carma/runner/record"
)

// TestUntouched checks that a task is marked as never having used its GPU only if that was
// measured.
func TestUntouched(t *testing.T) {
	long(t)
	g := newRig(t)
	g.script("busy", untilStopped)
	ref := g.run(api.Submit{Image: "busy", Mem: int64(units.GiB)})
	g.running(ref)
	g.eventually("it was looked at", func() bool { return g.monitor.NeverTouched(gpu.AttemptKey{Task: 1, Attempt: 1}) })
	other := g.run(api.Submit{Image: "busy", Mem: int64(units.GiB)})
	g.running(other)
	g.restart() // no daemon observed the task in the meantime
	for _, r := range []string{ref, other} {
		if _, err := g.api.Stop(g.ctx(), r, api.StopRequest{}); err != nil {
			t.Fatal(err)
		}
		if got := g.finished(r); got.Attempts[0].Untouched {
			t.Errorf("task %s was seen by two daemons, and says %+v", r, got.Attempts[0])
		}
	}
	third := g.run(api.Submit{Image: "busy", Mem: int64(units.GiB)})
	g.running(third)
	g.eventually("it was looked at", func() bool { return g.monitor.NeverTouched(gpu.AttemptKey{Task: 3, Attempt: 1}) })
	if _, err := g.api.Stop(g.ctx(), third, api.StopRequest{}); err != nil {
		t.Fatal(err)
	}
	if got := g.finished(third); !got.Attempts[0].Untouched || got.Attempts[0].Peak != 0 {
		t.Errorf("it says %+v", got.Attempts[0])
	}
}

// TestUsedUntouched checks that for removed tasks, allocations that were never used count as
// wasted, and unmeasured allocations as unmeasured.
func TestUsedUntouched(t *testing.T) {
	g := newRig(t)
	p := &usageArchive{r: g.Runner}
	start := units.InstantOf(time.Date(2026, 1, 2, 12, 0, 0, 0, time.Local))
	run := func(n int) *model.Attempt {
		return &model.Attempt{N: n, Started: start, Ended: start.Add(time.Hour), Grants: []model.Grant{{GPU: "GPU-a", Memory: 2 * units.GiB}}}
	}
	rec := &record.Record{User: "ann", Untouched: []int{1}}
	p.attempt(rec, run(1))
	p.attempt(rec, run(2))
	if day := p.days["2026-01-02"]; len(day) != 1 || day[0].Booked != 2*3600 || day[0].Wasted != 2*3600 || day[0].Unmeasured != 3600 || day[0].GPUSeconds != 2*3600 {
		t.Errorf("%+v", day)
	}
}
