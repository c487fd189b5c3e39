package sim

import (
	"cmp"
	"slices"

	"carma/internal/units"
)

// Curve is a quantity over time that changes in steps. Its points are in order of time,
// at most one at each instant, and each has a different value from the previous one.
// Before the first point the value is 0.
type Curve []Point

// Point is a value that holds from an instant until the next point.
type Point struct {
	At    units.Instant
	Value float64
}

// set appends the value from an instant on, which is not before the last point. If
// several values are set at one instant, the last one counts.
func (c *Curve) set(at units.Instant, value float64) {
	s := *c
	if n := len(s); n > 0 && s[n-1].At == at {
		s = s[:n-1]
	}
	if n := len(s); n == 0 || s[n-1].Value != value {
		s = append(s, Point{at, value})
	}
	*c = s
}

// At returns the value at an instant.
func (c Curve) At(at units.Instant) float64 {
	i, found := slices.BinarySearchFunc(c, at, func(p Point, at units.Instant) int { return cmp.Compare(p.At, at) })
	if found {
		return c[i].Value
	}
	if i == 0 {
		return 0
	}
	return c[i-1].Value
}

// Max returns the highest value, or 0 for a curve without points.
func (c Curve) Max() float64 {
	most := 0.0
	for i, p := range c {
		if i == 0 || p.Value > most {
			most = p.Value
		}
	}
	return most
}

// Integral returns the area under the curve, in its unit times seconds.
func (c Curve) Integral(from, to units.Instant) float64 {
	sum := 0.0
	for i, p := range c {
		end := to
		if i+1 < len(c) {
			end = min(end, c[i+1].At)
		}
		if begin := max(from, p.At); begin < end {
			sum += p.Value * seconds(end-begin)
		}
	}
	return sum
}

// Resample divides a span of time into n bins of equal length, up to a nanosecond, and
// returns the exact mean over each, so that the area is unchanged. Its cost is
// proportional to the points and the bins. It returns nil without a span or bins.
func (c Curve) Resample(from, to units.Instant, n int) []float64 {
	if to <= from || n <= 0 {
		return nil
	}
	means := make([]float64, n)
	for i, first := 0, 0; i < n; i++ {
		begin, end := BinEdge(from, to, n, i), BinEdge(from, to, n, i+1)
		for first+1 < len(c) && c[first+1].At <= begin {
			first++
		}
		last := first
		for last < len(c) && c[last].At < end {
			last++
		}
		if begin == end { // more bins than nanoseconds
			means[i] = c.At(begin)
			continue
		}
		means[i] = c[first:last].Integral(begin, end) / seconds(end-begin)
	}
	return means
}

// BinEdge returns the beginning of bin i of n, which is the end of bin i-1.
func BinEdge(from, to units.Instant, n, i int) units.Instant {
	width, rest := (to-from)/units.Instant(n), (to-from)%units.Instant(n)
	return from + width*units.Instant(i) + rest*units.Instant(i)/units.Instant(n)
}
