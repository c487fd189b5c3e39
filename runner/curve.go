package runner

import (
	"maps"

	"carma/mapper/units"

	"carma/runner/api"
)

// maxCurve bounds the points of a curve; one that has more is made coarser.
const maxCurve = 128

// curve is the memory that an attempt was seen to use: the highest figure of
// each step of time, on the GPU where it uses most.
type curve struct {
	Began units.Instant `json:"began"` // the first sample
	// Step is the length of a step in nanoseconds; it doubles when there are
	// too many. 0: one sample a step.
	Step int64 `json:"step,omitempty"`
	// At are the beginnings of the steps after Began, in nanoseconds; Used is
	// parallel to it.
	At   []int64       `json:"at"`
	Used []units.Bytes `json:"used"`
}

// add takes a sample in; steps without change are left out.
func (c *curve) add(now units.Instant, used units.Bytes) {
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

// coarsen makes steps so long that half of the points are left, or fewer.
func (c *curve) coarsen() {
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

func (c *curve) clone() *curve {
	if c == nil {
		return nil
	}
	d := *c
	d.At, d.Used = append([]int64(nil), c.At...), append([]units.Bytes(nil), c.Used...)
	return &d
}

// view is the curve as users see it.
func (c *curve) view() []api.CurvePoint {
	if c == nil {
		return nil
	}
	points := make([]api.CurvePoint, len(c.At))
	for i, at := range c.At {
		points[i] = api.CurvePoint{At: (c.Began + units.Instant(at)).Time(), Used: int64(c.Used[i])}
	}
	return points
}

// withCurve returns the record with what was seen of an attempt.
func (r *Record) withCurve(attempt int, c *curve) *Record {
	n := *r
	n.Curves = maps.Clone(r.Curves)
	if n.Curves == nil {
		n.Curves = map[int]*curve{}
	}
	n.Curves[attempt] = c
	return &n
}
