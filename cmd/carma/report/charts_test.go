package report

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"carma/mapper/policy"
)

// TestTimeAxis checks that a time axis has few labels with round figures, in hours if it is
// long enough.
func TestTimeAxis(t *testing.T) {
	for _, c := range []struct {
		length time.Duration
		most   int
		want   string
	}{
		{7*time.Hour + 8*time.Minute, 6, "0, 2 h, 4 h, 6 h"},
		{7*time.Hour + 8*time.Minute, 10, "0, 1 h, 2 h, 3 h, 4 h, 5 h, 6 h, 7 h"},
		{3 * time.Hour, 6, "0, 0.5 h, 1 h, 1.5 h, 2 h, 2.5 h, 3 h"},
		{90 * time.Minute, 6, "0, 15 min, 30 min, 45 min, 60 min, 75 min, 90 min"},
		{100 * time.Second, 6, "0, 30 s, 60 s, 90 s"},
		{0, 6, "0, 1 s"},
		{1927 * time.Hour, 6, "0, 500 h, 1000 h, 1500 h"},
	} {
		var got []string
		for _, tick := range newTimeAxis(c.length, c.most).ticks {
			got = append(got, tick.label)
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s: %s, want %s", c.length, strings.Join(got, ", "), c.want)
		}
	}
	for _, length := range []time.Duration{1, time.Minute, time.Hour, 1000 * time.Hour, 80000 * time.Hour, math.MaxInt64} {
		if a := newTimeAxis(length, 6); len(a.ticks) < 2 || len(a.ticks) > 7 || a.end < length.Seconds() {
			t.Errorf("%s: %d ticks up to %v s", length, len(a.ticks), a.end)
		}
	}
}

// TestLanes checks that tasks that run on one GPU at the same time are drawn on different
// lines.
func TestLanes(t *testing.T) {
	line := simulated(t, 80, 2, "magm").Runs[0].Timeline
	lanes, together := lanesOf(line.Spans, len(line.GPUs)), false
	for i, a := range line.Spans {
		for j, b := range line.Spans[:i] {
			if a.GPU != b.GPU || a.Launched >= b.Ended || b.Launched >= a.Ended {
				continue
			}
			together = true
			if lanes[i] == lanes[j] {
				t.Errorf("tasks %d and %d are both in lane %d of GPU %d", a.Task, b.Task, lanes[i], a.GPU)
			}
		}
	}
	if !together {
		t.Error("no two tasks ran together")
	}
}

// TestKinds checks that the kinds with the most GPU time get colours, and that a kind has the
// same colour under all policies.
func TestKinds(t *testing.T) {
	d := simulated(t, 60, 2, "exclusive", "magm")
	k := rankKinds(d.Runs)
	if len(k.legend) != shownKinds+1 || k.legend[shownKinds].Name != "3 more kinds" || k.class("nobody's") != "rest" {
		t.Errorf("%v", k.legend)
	}
	share := func(kind string) (sum float64) {
		for _, r := range d.Runs {
			for _, s := range r.Timeline.Spans {
				if r.Tasks[s.Task-1].Kind == kind {
					sum += s.Ended.Sub(s.Launched).Seconds()
				}
			}
		}
		return sum
	}
	for i := 1; i < shownKinds; i++ {
		if share(k.legend[i].Name) > share(k.legend[i-1].Name) {
			t.Errorf("%s has more GPU time than %s", k.legend[i].Name, k.legend[i-1].Name)
		}
	}
}

// TestPalette checks that a policy has the same colour beside any other policies, and that no
// two policies of a page share a colour while there are enough colours.
func TestPalette(t *testing.T) {
	of := func(policies ...string) []string {
		var runs []Run
		for _, p := range policies {
			runs = append(runs, Run{Policy: p})
		}
		return palette(runs)
	}
	if all, two := of("exclusive", "round-robin", "magm", "lug"), of("lug", "magm"); two[0] != all[3] || two[1] != all[2] {
		t.Errorf("%v, two of them %v", all, two)
	}
	all := of(policy.Names()...)
	slices.Sort(all)
	if n := len(slices.Compact(all)); n != len(policy.Names()) {
		t.Errorf("%d colours for %d policies", n, len(policy.Names()))
	}
	if got := of("magm", "unknown", "exclusive"); !slices.Equal(got, []string{"p0", "p1", "p2"}) {
		t.Errorf("%v", got)
	}
}
