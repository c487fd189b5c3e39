package usage

import (
	"math"
	"strings"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/journal"
	"carma/runner/record"
	"carma/runner/request"
	"carma/runner/rights"
)

// newArchive returns an archive in an empty journal, for callers who may see all usage.
func newArchive(t *testing.T) *Archive {
	j, err := journal.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	index := func(id model.GPUID) int { return strings.Index("ab", strings.TrimPrefix(string(id), "GPU-")) }
	return New(j, record.NewStore(), everything(true), index)
}

func newBatch(t *testing.T) *batch { return &batch{Archive: newArchive(t)} }

type everything bool

func (e everything) MayServer(rights.Action, request.Caller) bool { return bool(e) }

// TestUsedWithoutAway: time for which a task was suspended is counted separately.
func TestUsedWithoutAway(t *testing.T) {
	p := newBatch(t)
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
	at := func(day, hour int) units.Instant {
		return units.Instant(time.Date(2026, 1, day, hour, 0, 0, 0, time.Local).UnixNano())
	}
	p := newBatch(t)
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

// TestUsedUntouched checks that for removed tasks, allocations that were never used count as
// wasted, and unmeasured allocations as unmeasured.
func TestUsedUntouched(t *testing.T) {
	p := newBatch(t)
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

// TestList checks which days and whose usage a caller gets, and that old days are dropped.
func TestList(t *testing.T) {
	a := newArchive(t)
	at := units.InstantOf(time.Date(2026, 1, 2, 12, 0, 0, 0, time.Local))
	for id, user := range map[model.TaskID]string{1: "ann", 2: "bob", 3: "ann", 4: "bob"} {
		rec := &record.Record{Task: model.Task{Request: model.Request{ID: id}}, User: user}
		if rec.Task.Phase, rec.Task.Ended = model.Succeeded, at; id == 3 {
			rec.Task.Phase = model.Running
		}
		a.records.Put(rec)
	}
	if _, err := a.journal.Commit(journal.Batch{Meta: a.Add([]model.TaskID{1, 2, 3, 4, 5})}); err != nil {
		t.Fatal(err)
	}
	count := func(since, until string) (n int) {
		t.Helper()
		all, err := a.List(request.WithCaller(t.Context(), request.Caller{Name: "ann"}), since, until)
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range all {
			n += u.Succeeded
		}
		return n
	}
	if all, later, before := count("", ""), count("2026-01-03", ""), count("", "2026-01-02"); all != 3 || later != 0 || before != 0 {
		t.Errorf("%d in all, %d later, %d before", all, later, before)
	}
	a.auth = everything(false)
	if own := count("2026-01-02", "2026-01-03"); own != 1 {
		t.Errorf("ann sees %d of her own", own)
	}
	for after, want := range []int{1, 0} {
		if err := a.Drop(at.Time().AddDate(0, 0, pastDays+after)); err != nil || count("", "") != want {
			t.Errorf("after %d days: %d left, %v", pastDays+after, count("", ""), err)
		}
	}
}
