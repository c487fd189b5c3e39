package monitor

import (
	"carma/internal/units"

	"carma/runner/api"
)

// maxCurve is the largest number of points of a curve. A longer curve gets longer steps.
const maxCurve = 128

// Curve is the memory use of an attempt over time: the highest use in each
// step, on the GPU where it uses most.
type Curve struct {
	Began units.Instant `json:"began"` // the first sample
	// Step is the length of a step in nanoseconds, and grows when there are too many steps.
	// With 0 each sample is a step.
	Step int64 `json:"step,omitempty"`
	// At are the beginnings of the steps, in nanoseconds after Began. Used has
	// the same length.
	At   []int64       `json:"at"`
	Used []units.Bytes `json:"used"`
}

// Add adds a sample. Steps without change are left out.
func (c *Curve) Add(now units.Instant, used units.Bytes) {
	if len(c.At) == 0 {
		c.Began = now
	}
	at, n := int64(now.Sub(c.Began)), len(c.At)
	if c.Step > 0 {
		at -= at % c.Step
	}
	switch {
	case n > 0 && at <= c.At[n-1]:
		c.Used[n-1] = max(c.Used[n-1], used)
		return
	case n > 0 && c.Used[n-1] == used:
		return
	}
	c.At, c.Used = append(c.At, at), append(c.Used, used)
	if len(c.At) > maxCurve {
		c.coarsen()
	}
}

// coarsen makes the steps longer, until at most half of maxCurve points are
// left.
func (c *Curve) coarsen() {
	for len(c.At) > maxCurve/2 {
		c.Step = max(2*c.Step, c.At[len(c.At)-1]/maxCurve, 1)
		at, used := c.At[:0], c.Used[:0]
		for i, t := range c.At {
			t -= t % c.Step
			if n := len(at); n > 0 && at[n-1] == t {
				used[n-1] = max(used[n-1], c.Used[i])
				continue
			}
			at, used = append(at, t), append(used, c.Used[i])
		}
		c.At, c.Used = at, used
	}
}

func (c *Curve) clone() *Curve {
	if c == nil {
		return nil
	}
	d := *c
	d.At, d.Used = append([]int64(nil), c.At...), append([]units.Bytes(nil), c.Used...)
	return &d
}

// View returns the API form of the curve.
func (c *Curve) View() []api.CurvePoint {
	if c == nil {
		return nil
	}
	points := make([]api.CurvePoint, len(c.At))
	for i, at := range c.At {
		points[i] = api.CurvePoint{At: (c.Began + units.Instant(at)).Time(), Used: int64(c.Used[i])}
	}
	return points
}
