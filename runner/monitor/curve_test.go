package monitor

import (
	"testing"
	"time"

	"carma/internal/units"

	"pgregory.net/rapid"
)

// TestCurve checks that for any samples, a curve stays short and ordered, and that its maximum
// is the highest sample.
func TestCurve(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, now, peak := Curve{}, units.Instant(rapid.Int64Range(0, 1e18).Draw(t, "began")), units.Bytes(0)
		every := rapid.SampledFrom([]time.Duration{0, time.Nanosecond, time.Second, time.Hour}).Draw(t, "every")
		for range rapid.IntRange(1, 2000).Draw(t, "samples") {
			used := units.Bytes(rapid.Int64Range(0, 80).Draw(t, "used"))
			c.Add(now, used)
			peak = max(peak, used)
			now = now.Add(every)
		}
		highest := units.Bytes(0)
		for i, used := range c.Used {
			highest = max(highest, used)
			if i > 0 && c.At[i] <= c.At[i-1] {
				t.Fatalf("step %d is at %d, the one before at %d", i, c.At[i], c.At[i-1])
			}
		}
		if highest != peak || len(c.At) > maxCurve || len(c.At) != len(c.Used) {
			t.Fatalf("%d points, highest %d of %d", len(c.At), highest, peak)
		}
	})
}

// TestCurveIsExactWhileShort checks that a short curve contains every change with its time.
func TestCurveIsExactWhileShort(t *testing.T) {
	var c Curve
	for i, used := range []units.Bytes{1, 1, 5, 5, 5, 3} {
		c.Add(units.Instant(100+10*i), used)
	}
	if got := c.View(); len(got) != 3 || got[1].Used != 5 || !got[1].At.Equal(units.Instant(120).Time()) || got[2].Used != 3 || !got[2].At.Equal(units.Instant(150).Time()) {
		t.Errorf("curve %+v", got)
	}
}
