package tasks

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"carma/cmd/carma/cli"
	"carma/internal/units"
	"carma/runner/api"
)

// TestMem: for a task that has a GPU, its present allocation there counts, not the
// allocation of its next launch.
func TestMem(t *testing.T) {
	for want, task := range map[string]*api.Task{
		"19.5":  {Phase: "running", Need: int64(4 * units.GiB), Attempts: []api.Attempt{{N: 1, Grant: int64(19.5 * float64(units.GiB))}}},
		"4.0":   {Phase: "recovering", Need: int64(4 * units.GiB), Attempts: []api.Attempt{{N: 1, Grant: int64(2 * units.GiB)}}},
		"whole": {Phase: "running", Alone: true, Attempts: []api.Attempt{{N: 1, Grant: int64(40 * units.GiB)}}},
		"?":     {Phase: "estimating"},
	} {
		if got := Need(task); got != want {
			t.Errorf("%s: %s, want %s", task.Phase, got, want)
		}
	}
}

// TestSuspendedTimes checks that a suspended task shows the time of its suspension, and that
// the run time of a task does not include suspensions.
func TestSuspendedTimes(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return noon.Add(-d) }
	at := []api.Attempt{{N: 1, Started: ago(4 * time.Hour), Suspended: time.Hour}}
	for want, task := range map[string]*api.Task{
		"40m":   {Phase: "suspended", Started: ago(4 * time.Hour), Attempts: at, Suspension: &api.Suspension{Since: ago(40 * time.Minute), Host: int64(units.GiB)}},
		"3h00m": {Phase: "running", Started: ago(4 * time.Hour), Attempts: at},
		"2h00m": {Phase: "succeeded", Started: ago(4 * time.Hour), Ended: ago(time.Hour), Attempts: at},
	} {
		if got := cli.Age(TimeOf(task, noon)); got != want || away(task) != "1h00m" || (inHost(task) == "1.0") != (task.Suspension != nil) {
			t.Errorf("%s: %s, want %s; away %s, in host memory %s", task.Phase, got, want, away(task), inHost(task))
		}
	}
	for want, now := range map[string]bool{"running for 3h00m, suspended for 1h00m": false, "ran for 3h00m, suspended for 1h00m": true} {
		if got := course(&at[0], noon, now); got != want {
			t.Errorf("why says %q, want %q", got, want)
		}
	}
}

// TestTableFits checks that the table fits with names of any length and any number of GPUs.
func TestTableFits(t *testing.T) {
	long := strings.Repeat("long-name-", 20)
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	var list []api.Task
	for i := range 8 {
		task := api.Task{
			ID: int64(100_000 + i), Name: long, User: long, Phase: "recovering", GPUCount: 16, Need: int64(79 * units.GiB), Position: 10_000, Waits: long + "\n\x1b[31m", Submitted: noon.Add(-2000 * time.Hour),
		}
		if i%2 == 0 {
			task.Phase = "running"
			task.Attempts = []api.Attempt{{N: 1, Outcome: "infrastructure"}, {N: 2, GPUs: make([]api.GPURef, 16)}}
			task.Progress = &api.Progress{Share: 0.99999, ETA: noon.Add(1000 * time.Hour), Slowdown: &api.Slowdown{Value: 12.345}}
		}
		list = append(list, task)
	}
	for _, width := range []int{80, 81, 100, 132, 200} {
		var b bytes.Buffer
		if err := Table(list, noon, width).Write(&b, width); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
				t.Errorf("at %d columns it is %d wide: %s", width, n, line)
			}
		}
		if strings.ContainsAny(b.String(), "\x1b\r") || strings.Count(b.String(), "\n") != 9 {
			t.Errorf("%q", b.String())
		}
	}
}

// TestFar checks the short form of a task's progress. A share is shown as 100% only when the
// task is complete.
func TestFar(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	for _, row := range []struct {
		p    *api.Progress
		far  string
		slow string
	}{
		{nil, "", ""},
		{&api.Progress{}, "", ""},
		{&api.Progress{Share: 0.999, ETA: noon.Add(12 * time.Minute), Slowdown: &api.Slowdown{Value: 1.27, Basis: "measured"}}, "99% 12m left", "1.3x"},
		{&api.Progress{Share: 0.16, Doubt: "few lines"}, "~16%", ""},
		{&api.Progress{Done: 1200, Unit: "steps", Slowdown: &api.Slowdown{Value: 1.5, Basis: "predicted"}}, "1200 steps", "~1.5x"},
		{&api.Progress{ETA: noon.Add(-time.Minute)}, "0s left", ""},
	} {
		task := &api.Task{Progress: row.p}
		if far, slow := Far(task, noon), Slowed(task); far != row.far || slow != row.slow {
			t.Errorf("%+v: %q %q, want %q %q", row.p, far, slow, row.far, row.slow)
		}
	}
	one := []api.Task{{Progress: &api.Progress{Share: 0.5, Slowdown: &api.Slowdown{Value: 2}}}}
	for width, want := range map[int]bool{0: true, wide: true, wide - 1: false} {
		titles := ""
		for _, c := range Table(one, noon, width).Columns {
			titles += c.Title + " "
		}
		if strings.Contains(titles, "SLOW") != want || !strings.Contains(titles, "PROGRESS") {
			t.Errorf("at %d columns: %s", width, titles)
		}
	}
}
