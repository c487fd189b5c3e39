package runner

import (
	"math"
	"testing"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/api"
)

// TestUsedOfRemoved: the usage of removed tasks is kept exactly once, also after restarts and a
// second removal.
func TestUsedOfRemoved(t *testing.T) {
	g := newRig(t)
	g.script("ok", printing(0, "done"))
	want, ids := 0.0, []model.TaskID{}
	for range 3 {
		ref := g.runAs(ann, api.Submit{Image: "ok", Mem: int64(units.GiB), Account: ""})
		g.finished(ref)
		rec, err := g.find.Find(ref)
		if err != nil {
			t.Fatal(err)
		}
		a := rec.Task.Last()
		want += a.Ended.Sub(a.Started).Seconds()
		ids = append(ids, rec.ID())
	}
	if err := g.control.RemoveAll(g.ctx(), "root", append(ids, ids...)...); err != nil {
		t.Fatal(err)
	}
	check := func(when string) {
		t.Helper()
		all, err := g.past.List(g.ctx(), "", "")
		got, tasks, started := 0.0, 0, 0
		for _, u := range all {
			if u.User != ann.Name || u.Image != "ok" {
				t.Errorf("%s: %+v", when, u)
			}
			got, tasks, started = got+u.GPUSeconds, tasks+u.Tasks, started+u.Starts
		}
		if err != nil || tasks != 3 || started != 3 || math.Abs(got-want) > 1e-6 || want == 0 {
			t.Errorf("%s: %d tasks, %v s of %v, %v", when, tasks, got, want, err)
		}
	}
	check("removed")
	g.restart()
	check("after a restart")
	if err := g.control.RemoveAll(g.ctx(), "root", ids...); err != nil {
		t.Fatal(err)
	}
	check("removed again")
	if none, err := g.past.List(g.ctx(), "2999-01-01", ""); err != nil || len(none) != 0 {
		t.Errorf("%+v, %v", none, err)
	}
}
