package estimator

import (
	"math"
	"strings"
	"testing"

	"carma/internal/units"
)

func TestFromRuns(t *testing.T) {
	const g = units.GiB
	for _, row := range []struct {
		name         string
		batch        int
		runs         []Run
		point, upper float64 // GiB
		far          float64
	}{
		{"twice the batch of one run", 64, []Run{{32, 10 * g}}, 17, 20, 1},
		{"half of it", 16, []Run{{32, 10 * g}}, 6.5, 10, 1},
		{"between two", 48, []Run{{64, 18 * g}, {32, 10 * g}}, 14, 14 * math.Exp(0.045), 0},
		{"beyond two", 128, []Run{{64, 18 * g}, {32, 10 * g}}, 34, 34 * math.Exp(0.045+0.025), 1},
		{"below two", 16, []Run{{64, 18 * g}, {32, 10 * g}}, 6, 6 * math.Exp(0.045+0.025), 1},
		{"of three, those around it", 96, []Run{{64, 18 * g}, {32, 10 * g}, {128, 22 * g}}, 20, 20 * math.Exp(0.045), 0},
		{"the higher of two at one size", 64, []Run{{32, 9 * g}, {32, 10 * g}}, 17, 20, 1},
		{"one that shrinks with the batch", 128, []Run{{32, 12 * g}, {64, 10 * g}}, 10, 10 * math.Exp(0.045+0.025), 1},
		{"one that was not seen", 64, []Run{{32, 10 * g}, {16, 0}, {0, g}, {-8, g}}, 17, 20, 1},
	} {
		e, far, ok := FromRuns(row.batch, row.runs)
		if !ok || math.Abs(e.Point.GiB()-row.point) > 1e-6 || math.Abs(e.Memory.GiB()-row.upper) > 1e-6 || math.Abs(far-row.far) > 1e-9 {
			t.Errorf("%s: %.3f and %.3f GiB, %v doublings away, %v", row.name, e.Point.GiB(), e.Memory.GiB(), far, ok)
		}
		if e.Method != OtherBatches || !strings.Contains(e.Detail, "batch size") {
			t.Errorf("%s: %+v", row.name, e)
		}
	}
	for _, runs := range [][]Run{nil, {{0, g}}, {{8, 0}}} {
		if e, _, ok := FromRuns(32, runs); ok {
			t.Errorf("%v gave %+v", runs, e)
		}
	}
	if e, _, ok := FromRuns(0, []Run{{8, g}}); ok {
		t.Errorf("an unknown batch size gave %+v", e)
	}
	if e, _, _ := FromRuns(1e9, []Run{{1, 80 * g}}); e.Memory <= 0 || e.Point > e.Memory {
		t.Errorf("a hostile size gave %+v", e)
	}
}

func TestNearest(t *testing.T) {
	runs := []Run{{8, 1}, {64, 1}, {256, 1}}
	for batch, want := range map[int]int{1: 8, 16: 8, 32: 64, 100: 64, 128: 256, 1000: 256} {
		if r, ok := Nearest(batch, runs); !ok || r.Batch != want {
			t.Errorf("nearest to %d is %d", batch, r.Batch)
		}
	}
}
