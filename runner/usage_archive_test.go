package runner

import (
	"math"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/record"
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
		rec, err := g.Find(ref)
		if err != nil {
			t.Fatal(err)
		}
		a := rec.Task.Last()
		want += a.Ended.Sub(a.Started).Seconds()
		ids = append(ids, rec.ID())
	}
	if err := g.remove(g.ctx(), "root", append(ids, ids...)...); err != nil {
		t.Fatal(err)
	}
	check := func(when string) {
		t.Helper()
		all, err := g.Used(g.ctx(), "", "")
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
	if err := g.remove(g.ctx(), "root", ids...); err != nil {
		t.Fatal(err)
	}
	check("removed again")
	if none, err := g.Used(g.ctx(), "2999-01-01", ""); err != nil || len(none) != 0 {
		t.Errorf("%+v, %v", none, err)
	}
}

// TestUsedWithoutAway: time for which a task was suspended is counted separately.
func TestUsedWithoutAway(t *testing.T) {
	g := newRig(t)
	p := &usageArchive{r: g.Runner}
	start := units.InstantOf(time.Date(2026, 1, 2, 12, 0, 0, 0, time.Local))
	rec := &record.Record{User: "ann", Energy: map[int]float64{1: 80}}
	p.attempt(rec, &model.Attempt{N: 1, Started: start, Ended: start.Add(4 * time.Hour), SuspendedTime: time.Hour, Grants: []model.Grant{{GPU: "GPU-a", Memory: 2 * units.GiB}}, Peak: units.GiB})
	day := p.days["2026-01-02"]
	if len(day) != 1 || day[0].GPUSeconds != 3*3600 || day[0].AwaySeconds != 3600 || day[0].EnergyJ != 80 || day[0].Booked != 2*3*3600 {
		t.Errorf("%+v", day)
	}
}

// TestUsedByDay: an attempt over midnight counts on both days, and that the number of sums of a
// day is limited.
func TestUsedByDay(t *testing.T) {
	g := newRig(t)
	at := func(day, hour int) units.Instant {
		return units.Instant(time.Date(2026, 1, day, hour, 0, 0, 0, time.Local).UnixNano())
	}
	p := usageArchive{r: g.Runner}
	rec := &record.Record{User: "ann", Submit: api.Submit{Image: "a", Account: "lab"}, Energy: map[int]float64{1: 600}}
	p.attempt(rec, &model.Attempt{
		N: 1, Started: at(1, 22), Ended: at(3, 4), Peak: units.GiB, Class: model.ExitGPUOOM,
		Grants: []model.Grant{{GPU: "GPU-a", Memory: 3 * units.GiB}, {GPU: "GPU-b", Memory: 3 * units.GiB}},
	})
	for date, hours := range map[string]float64{"2026-01-01": 2, "2026-01-02": 24, "2026-01-03": 4} {
		day := p.days[date]
		if len(day) != 2 || day[0].GPUSeconds != hours*3600 || day[1].Booked != 3*hours*3600 || day[1].Wasted != 2*hours*3600 || math.Abs(day[0].EnergyJ-hours*10) > 1e-9 {
			t.Errorf("%s: %+v", date, day)
		}
	}
	if d := p.days["2026-01-03"]; d[0].OOMs+d[1].OOMs != 1 || d[0].Account != "lab" {
		t.Errorf("%+v", d)
	}
	for i := range 3 * pastRows {
		one := *rec
		one.Group = model.TaskID(i).String()
		p.row(&one, at(5, 1), nil).Tasks++
	}
	total := 0
	for _, u := range p.days["2026-01-05"] {
		total += u.Tasks
	}
	if n := len(p.days["2026-01-05"]); n > pastRows+1 || total != 3*pastRows {
		t.Errorf("%d sums of %d tasks", n, total)
	}
}
