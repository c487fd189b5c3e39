package runner

import (
	"runtime"
	"testing"
	"time"

	"carma/internal/units"
	"carma/runner/api"
)

// TestSubmissionWithManyGPUs: the time of a submission does not grow with the number of GPUs.
// In an earlier version each submission copied the data of all GPUs twice, which took 90 ms
// with 10,000 GPUs.
func TestSubmissionWithManyGPUs(t *testing.T) {
	g := newRig(t, func(g *rig) {
		g.cards = newCards(4000, 40*units.GiB)
		g.opt.SampleEvery = time.Hour
	})
	g.script("loop", untilStopped)
	g.running(g.run(api.Submit{Image: "loop", Mem: int64(units.GiB)}))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const tasks = 20
	for range tasks {
		g.run(api.Submit{Image: "loop", Mem: int64(units.GiB)})
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / tasks; each > 1<<20 {
		t.Errorf("a submission allocates %d bytes", each)
	} else {
		t.Logf("a submission allocates %d bytes", each)
	}
}
