package account

import (
	"math"
	"testing"
	"time"

	"carma/internal/units"
	"carma/runner/api"
)

// TestSumSuspended checks that the time of a suspension is not GPU time. The present suspension
// counts at its real time. Earlier suspensions count as if they were spread evenly over the
// attempt.
func TestSumSuspended(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	at := func(hours float64) time.Time { return noon.Add(time.Duration(hours * float64(time.Hour))) }
	gpus, gib := []api.GPURef{{Index: 0}}, int64(units.GiB)
	list := []api.Task{
		{ID: 1, User: "ann", Phase: "succeeded", Submitted: at(-10), Attempts: []api.Attempt{
			{Outcome: "ok", GPUs: gpus, Launched: at(-8), Started: at(-8), Ended: at(-4), Suspended: time.Hour, Grant: 10 * gib, Peak: 4 * gib, EnergyJ: 900},
		}},
		{ID: 2, User: "bob", Phase: "suspended", Submitted: at(-9), Suspension: &api.Suspension{Since: at(-2)}, Attempts: []api.Attempt{
			{GPUs: gpus, Launched: at(-8), Started: at(-8), Suspended: 3 * time.Hour},
		}},
	}
	for _, row := range []struct {
		what      string
		span      span
		user      int
		ran, away float64
	}{
		{"all of ann's", span{}, 0, 3, 1},
		{"half of ann's", span{at(-8), at(-6)}, 0, 1.5, 0.5},
		{"all of bob's", span{}, 1, 5, 3},
		{"bob's of the last hour", span{since: at(-1)}, 1, 0, 1},
		{"bob's before it left", span{until: at(-2)}, 1, 5, 1},
	} {
		rows, total := sum(list[row.user:row.user+1], nil, "user", row.span, noon)
		if len(rows) != 1 || math.Abs(rows[0].GPUHours-row.ran) > 1e-9 || math.Abs(rows[0].AwayHours-row.away) > 1e-9 || total.AwayHours != rows[0].AwayHours {
			t.Errorf("%s: %+v, want %v h on its GPU and %v h off it", row.what, rows, row.ran, row.away)
		}
	}
	rows, _ := sum(list[:1], nil, "user", span{}, noon)
	if u := rows[0]; math.Abs(u.EnergyJ-900) > 1e-9 || math.Abs(u.BookedGiBHours-30) > 1e-9 || math.Abs(u.WastedGiBHours-18) > 1e-9 {
		t.Errorf("%+v", u)
	}
	past, _ := sum(nil, []api.Used{{User: "eve", GPUSeconds: 3600, AwaySeconds: 7200}}, "user", span{}, noon)
	if len(past) != 1 || past[0].GPUHours != 1 || past[0].AwayHours != 2 {
		t.Errorf("removed: %+v", past)
	}
}

// TestSumUntouched checks that all memory allocated to a task that never used its GPU counts as
// wasted. An attempt whose use was not measured counts as no allocation, and its hours are
// reported.
func TestSumUntouched(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	gib := int64(units.GiB)
	ran := func(a api.Attempt) api.Attempt {
		a.GPUs, a.Grant, a.Outcome, a.Launched, a.Started, a.Ended = []api.GPURef{{}}, 10*gib, "ok", noon.Add(-2*time.Hour), noon.Add(-2*time.Hour), noon
		return a
	}
	rows, total := sum([]api.Task{{ID: 1, User: "ann", Phase: "succeeded", Attempts: []api.Attempt{
		ran(api.Attempt{Peak: 4 * gib}), ran(api.Attempt{Untouched: true}), ran(api.Attempt{}),
	}}}, []api.Used{{User: "ann", Unmeasured: 3600, GPUSeconds: 3600}}, "user", span{}, noon)
	if u := rows[0]; u.BookedGiBHours != 40 || u.WastedGiBHours != 32 || u.UnmeasuredHours != 3 || total.UnmeasuredHours != 3 || u.GPUHours != 7 {
		t.Errorf("%+v", u)
	}
}

func TestSum(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	at := func(hours float64) time.Time { return noon.Add(time.Duration(hours * float64(time.Hour))) }
	gpus := []api.GPURef{{Index: 0}, {Index: 1}}
	gib := int64(units.GiB)
	list := []api.Task{
		{ID: 1, User: "ann", Group: "exp", Image: "a", Phase: "succeeded", Submitted: at(-10), Attempts: []api.Attempt{
			{Outcome: "gpu-oom", GPUs: gpus, Launched: at(-8), Ended: at(-7), Grant: 4 * gib, Peak: 4 * gib, EnergyJ: 100},
			{Outcome: "ok", GPUs: gpus, Launched: at(-6), Started: at(-5), Ended: at(-1), Grant: 10 * gib, Peak: 4 * gib, EnergyJ: 800},
		}},
		{ID: 2, User: "bob", Image: "a", Phase: "running", Submitted: at(-4), Attempts: []api.Attempt{{GPUs: gpus[:1], Launched: at(-2), Started: at(-2), Grant: 8 * gib}}},
		{ID: 3, User: "bob", Image: "b", Phase: "queued", Submitted: at(-1)},
	}
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	rows, total := sum(list, nil, "user", span{}, noon)
	if len(rows) != 2 || rows[0].Name != "ann" || rows[0].Tasks != 1 || rows[1].Tasks != 2 || total.Tasks != 3 || rows[0].OOMs != 1 || rows[0].Succeeded != 1 {
		t.Fatalf("%+v, %+v", rows, total)
	}
	near("ann's hours", rows[0].GPUHours, 10)
	near("ann's share", rows[0].Share, 10.0/12)
	near("ann's booked", rows[0].BookedGiBHours, 2*4+8*10)
	near("ann's wasted", rows[0].WastedGiBHours, 8*6)
	near("ann's energy", rows[0].EnergyJ, 900)
	near("ann's waiting", rows[0].Waiting, 2*3600)
	near("bob's hours", rows[1].GPUHours, 2)
	near("bob's booked, without a peak", rows[1].BookedGiBHours, 0)

	rows, _ = sum(list, nil, "gpu", span{}, noon)
	if len(rows) != 2 || rows[0].Name != "0" || rows[0].Tasks != 2 || rows[1].Tasks != 1 || rows[0].OOMs != 1 || rows[1].OOMs != 1 {
		t.Fatalf("%+v", rows)
	}
	near("hours of GPU 0", rows[0].GPUHours, 7)
	near("energy of GPU 1", rows[1].EnergyJ, 450)

	rows, total = sum(list, nil, "group", span{at(-3), at(-1.5)}, noon)
	if len(rows) != 2 || rows[0].Name != "exp" || rows[0].OOMs != 0 {
		t.Fatalf("%+v", rows)
	}
	near("hours of the group in the span", rows[0].GPUHours, 3)
	near("energy in the span", rows[0].EnergyJ, 300)
	near("all in the span", total.GPUHours, 3.5)
}
