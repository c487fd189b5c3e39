package runner

import (
	"testing"

	"carma/internal/units"
	"carma/runner/api"
	"carma/runner/gpu"
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
