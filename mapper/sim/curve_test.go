package sim

import (
	"math"
	"slices"
	"testing"
	"time"

	"carma/internal/units"

	"pgregory.net/rapid"
)

const second = units.Instant(time.Second)

func curveOf(points ...Point) Curve {
	var c Curve
	for _, p := range points {
		c.set(p.At, p.Value)
	}
	return c
}

// TestCurveIsCompact checks that a curve keeps only changes, and the last value of each
// instant.
func TestCurveIsCompact(t *testing.T) {
	for _, c := range []struct {
		name string
		got  Curve
		want Curve
	}{
		{"no change", curveOf(Point{1, 5}, Point{2, 5}, Point{3, 5}), Curve{{1, 5}}},
		{"two at once", curveOf(Point{1, 5}, Point{2, 6}, Point{2, 7}), Curve{{1, 5}, {2, 7}}},
		{"there and back at once", curveOf(Point{1, 5}, Point{2, 6}, Point{2, 5}, Point{3, 8}), Curve{{1, 5}, {3, 8}}},
		{"the first again", curveOf(Point{1, 5}, Point{1, 0}), Curve{{1, 0}}},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, c.got, c.want)
		}
	}
}

func TestResample(t *testing.T) {
	c := curveOf(Point{10 * second, 4}, Point{15 * second, 0}, Point{19 * second, 10}, Point{20 * second, 2})
	for _, tt := range []struct {
		name     string
		curve    Curve
		from, to units.Instant
		n        int
		want     []float64
	}{
		{"whole steps", c, 10 * second, 20 * second, 2, []float64{4, 2}},
		{"one bin", c, 10 * second, 20 * second, 1, []float64{3}},
		{"before the first point", c, 0, 20 * second, 2, []float64{0, 3}},
		{"after the last", c, 20 * second, 40 * second, 2, []float64{2, 2}},
		{"within one step", c, 11 * second, 13 * second, 4, []float64{4, 4, 4, 4}},
		{"more bins than nanoseconds", Curve{{0, 1}, {1, 2}}, 0, 2, 4, []float64{1, 1, 2, 2}},
		{"no points", nil, 0, 10, 2, []float64{0, 0}},
		{"no span", c, 10, 10, 2, nil},
		{"no bins", c, 0, 10, 0, nil},
	} {
		if got := tt.curve.Resample(tt.from, tt.to, tt.n); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// TestResampleKeepsTheArea checks that the area is kept for any curve and number of bins.
func TestResampleKeepsTheArea(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c Curve
		at := units.Instant(0)
		for range rapid.IntRange(0, 40).Draw(t, "points") {
			at += units.Instant(rapid.Int64Range(0, 100*int64(time.Second)).Draw(t, "after"))
			c.set(at, float64(rapid.IntRange(0, 50).Draw(t, "value")))
		}
		from := units.Instant(rapid.Int64Range(0, int64(at)+1).Draw(t, "from"))
		to := from + units.Instant(rapid.Int64Range(1, int64(at)+5).Draw(t, "span"))
		n := rapid.IntRange(1, 60).Draw(t, "bins")
		sum := 0.0
		for i, mean := range c.Resample(from, to, n) {
			begin, end := BinEdge(from, to, n, i), BinEdge(from, to, n, i+1)
			sum += mean * seconds(end-begin)
			if mean > c.Max()+1e-9 || mean < 0 {
				t.Fatalf("bin %d has %v, the curve at most %v", i, mean, c.Max())
			}
		}
		if want := c.Integral(from, to); math.Abs(sum-want) > 1e-6*(1+want) {
			t.Fatalf("%d bins hold %v, the curve %v", n, sum, want)
		}
		if BinEdge(from, to, n, 0) != from || BinEdge(from, to, n, n) != to {
			t.Fatal("the bins do not end where the span does")
		}
	})
}

func TestCurveAt(t *testing.T) {
	c := Curve{{10, 4}, {15, 0}, {20, 2}}
	for at, want := range map[units.Instant]float64{0: 0, 9: 0, 10: 4, 14: 4, 15: 0, 19: 0, 20: 2, 99: 2} {
		if got := c.At(at); got != want {
			t.Errorf("at %d: %v, want %v", at, got, want)
		}
	}
}
