package progress

import (
	"math"
	"time"
)

// Speed is the speed of a task in some interval.
type Speed struct {
	Rate  float64 // units per second, pauses left out
	Error float64 // relative standard error of Rate, up to 1
	// Intervals are the times between counts that it comes from, Seconds how
	// long they are together, pauses left out.
	Intervals int
	Seconds   float64
}

// Speed returns the task's speed between two times. It returns false if fewer than two
// counts are from then, or the count has restarted since. Of times long past fewer counts
// are kept: one in a 24th of the counts since.
func (r *Reader) Speed(from, until time.Time) (Speed, bool) {
	return speed(r.pace.between(r.seconds(from), r.seconds(until)))
}

// Since returns how fast the task has gone since a time.
func (r *Reader) Since(from time.Time) (Speed, bool) {
	return speed(r.pace.between(r.seconds(from), math.Inf(1)))
}

// speed returns the speed of points in order of time: the mean, and its standard error from
// the scatter of the intervals. Ends of intervals that come early or late do not add up, so
// the error is rather too large.
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
		// Few intervals: their scatter may be small by chance (Student's t).
		s.Error = min(1, math.Sqrt(sum*n/(n-1))/seconds*(1+2/(n-1)))
	}
	return s, true
}
