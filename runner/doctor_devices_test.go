package runner

import (
	"strings"
	"testing"

	"carma/internal/units"
	"carma/runner/api"
	"carma/runner/gpu/devices"
)

// TestDoctorTellsOfLoss checks that doctor lists the tasks that cannot open their GPUs.
func TestDoctorTellsOfLoss(t *testing.T) {
	g, a := newAccessRig(t)
	g.script("stay", untilStopped)
	ref := g.run(api.Submit{Image: "stay", Mem: int64(units.GiB)})
	g.uses(ref, units.GiB)
	g.eventually("it is seen", func() bool { _, c := g.monitor.Observed(1, 1); return c != nil })
	row := func() (found api.Check) {
		checks, err := g.api.Doctor(g.ctx())
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range checks {
			if c.Name == "GPU access" {
				found = c
			}
		}
		return found
	}
	if c := row(); c.Status != "ok" {
		t.Errorf("before: %+v", c)
	}
	g.loses(a, devices.Denied)
	g.until(ref, "its loss", func(t api.Task) bool { return t.Attempts[0].Devices != "" })
	if c := row(); c.Status != "failure" || !strings.Contains(c.Detail, "task 1: GPU 0 can no longer be opened") || c.Fix == "" {
		t.Errorf("after: %+v", c)
	}
	g.stopAndCancel(ref)
}
