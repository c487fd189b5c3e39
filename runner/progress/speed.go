package progress

import (
	"math"
	"time"
)

// Speed is the speed of a task in some interval.
type Speed struct {
	Rate  float64 // units per second, pauses left out
	Error float64 // relative standard error of Rate, up to 1
	// Intervals is the number of intervals between counts that Rate is computed from.
	// Seconds is their total length, pauses left out.
	Intervals int
	Seconds   float64
}

// Speed returns the task's speed between two times. It returns false if that time has
// fewer than two counts, or the count has restarted since. Of earlier times fewer counts
// are kept: one of every stretch as long as 1/24 of the counts since then.
func (r *Reader) Speed(from, until time.Time) (Speed, bool) {
	return speed(r.pace.between(r.seconds(from), r.seconds(until)))
}

// Since returns the task's speed since a time.
func (r *Reader) Since(from time.Time) (Speed, bool) {
	return speed(r.pace.between(r.seconds(from), math.Inf(1)))
}

// speed returns the mean speed of points in order of time, and its standard error from
// the scatter of the intervals. Early or late ends of intervals do not add up, so the
// error tends to be too large.
func speed(points []point) (Speed, bool) {
	if len(points) < 2 {
		return Speed{}, false
	}
	a, b := points[0], points[len(points)-1]
	seconds, steps := worked(a, b), did(a, b)
	if !(seconds > 0 && steps > 0) {
		return Speed{}, false
	}
	each := seconds / steps
	sum := 0.0
	for i := range points[1:] {
		r := worked(points[i], points[i+1]) - each*did(points[i], points[i+1])
		sum += r * r
	}
	n := float64(len(points) - 1)
	s := Speed{Rate: steps / seconds, Intervals: len(points) - 1, Seconds: seconds, Error: 1}
	if n > 1 {
		// The scatter of few intervals may be small by chance (Student's t).
		s.Error = min(1, math.Sqrt(sum*n/(n-1))/seconds*(1+2/(n-1)))
	}
	return s, true
}
