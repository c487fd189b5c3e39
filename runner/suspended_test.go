package runner

import (
	"testing"

	"carma/mapper"
	"carma/mapper/units"
	"carma/runner/api"
)

// What the core is not told to be possible is answered all the same: a task that is to
// be suspended runs on.
func TestSuspendIsAnswered(t *testing.T) {
	g := newRig(t, byMemory)
	g.script("stay", untilStopped)
	ref := g.run(api.Submit{Image: "stay", Mem: int64(units.GiB)})
	g.running(ref)
	var infos []mapper.GPUInfo
	if err := g.look(g.ctx(), func(s *mapper.State) {
		for _, gpu := range s.GPUs() {
			gpu.Suspend = mapper.SuspendHere
			infos = append(infos, gpu.GPUInfo)
		}
	}); err != nil {
		t.Fatal(err)
	}
	for _, ev := range []mapper.Event{mapper.GPUsFound{At: g.Clock.Now(), GPUs: infos}, mapper.SuspendAsked{At: g.Clock.Now(), Task: 1, By: "ann"}} {
		if err := g.do(g.ctx(), fact(ev)); err != nil {
			t.Fatal(err)
		}
	}
	g.eventually("it runs on, and says why", func() bool {
		rec, err := g.Find(ref)
		return err == nil && rec.Task.Phase == mapper.Running && rec.Task.Reason.Code == mapper.ReasonNotSuspended && rec.Task.Reason.Text == cannotSuspend
	})
}
