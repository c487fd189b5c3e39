package runner

import (
	"testing"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/gpu"
)

// TestCurveIsKept: the memory curve of an attempt is available while the attempt runs, after
// its end and after a restart. Listings do not contain it.
func TestCurveIsKept(t *testing.T) {
	g := newRig(t)
	g.script("train", untilStopped)
	ref := g.run(api.Submit{Image: "train", Mem: int64(8 * units.GiB)})
	task := g.running(ref)
	highest := func() (most int64) {
		task, err := g.api.Task(g.ctx(), ref)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range task.Attempts[0].Curve {
			most = max(most, p.Used)
		}
		return most
	}
	sample := func(used units.Bytes) {
		g.cards.set(gpu.Sample{UUID: task.Attempts[0].GPUs[0].UUID, Used: used, Processes: []gpu.Process{
			{Task: model.TaskID(task.ID), Attempt: 1, Used: used / 4}, {Task: model.TaskID(task.ID), Attempt: 1, Used: used - used/4},
		}})
	}
	sample(4 * units.GiB)
	g.eventually("4 GiB are seen", func() bool { return highest() == int64(4*units.GiB) })
	sample(7 * units.GiB)
	g.eventually("7 GiB are seen", func() bool { return highest() == int64(7*units.GiB) })
	if _, err := g.api.Stop(g.ctx(), ref, api.StopRequest{}); err != nil {
		t.Fatal(err)
	}
	if task := g.finished(ref); task.Attempts[0].Peak != int64(7*units.GiB) {
		t.Errorf("peak %d", task.Attempts[0].Peak)
	}
	g.restart()
	if most := highest(); most != int64(7*units.GiB) {
		t.Errorf("after a restart the curve goes up to %d", most)
	}
	if all, err := g.api.Tasks(g.ctx(), api.ListOptions{All: true}); err != nil || len(all) != 1 || all[0].Attempts[0].Curve != nil {
		t.Errorf("listed: %+v, %v", all, err)
	}
}
