package progress

import "slices"

// point is a count at a time. paused is the total time of pauses until then. skipped is
// the part of the count without work, such as the steps of an earlier run that a resumed
// program jumps over.
type point struct {
	n                         int // number of points before it, including dropped ones
	at, paused, done, skipped float64
}

// worked returns the time between two points without pauses, did the count without
// skipped steps.
func worked(a, b point) float64 { return (b.at - a.at) - (b.paused - a.paused) }
func did(a, b point) float64    { return (b.done - a.done) - (b.skipped - a.skipped) }

// mostPoints is the number of points kept. Of older points fewer are kept: of every
// stretch as long as 1/perAge of the points since then, one point.
const mostPoints, perAge = 512, 24

// gap is the shortest time between two points, in seconds. Counts within it become one
// point with the last count, so that a flushed buffer is one point.
const gap = 1.0

// An interval that is pauseAlone times longer than usual contains a pause. If it contains
// an evaluation, pauseSeen times longer is enough. An interval that is skip times shorter
// is a jump. Neighbours on a GPU may slow a task down by the same factor, but the
// slowdown then lasts for more than again intervals.
const (
	pauseAlone = 3.0
	pauseSeen  = 1.5
	skip       = 20.0
)

// pace records the speed of a counter.
type pace struct {
	kept  [mostPoints + 1]point // and room for the open point
	n     int                   // points kept
	count int                   // ... and dropped
	open  point
	began bool
	since float64 // time at which open began
	first point

	usual   [16]float64 // seconds per step of the latest intervals
	usualN  int
	paused  float64
	skipped float64
	streak  [again]float64 // pauses removed from the latest consecutive intervals
	inRow   int
	aside   bool // an aside mark was seen since the last count
	besides bool // ... before the open point
}

// add adds a count. It reports whether the count has risen.
func (p *pace) add(at, done float64) bool {
	switch {
	case !p.began:
		p.began, p.since = true, at
		p.open = point{at: at, done: done}
		return true
	case done <= p.open.done:
		return false
	}
	at = max(at, p.open.at)
	if at-p.since >= gap {
		p.keep(p.open)
		p.since, p.besides = at, false
	}
	p.open = point{at: at, done: done}
	p.besides, p.aside = p.besides || p.aside, false
	return true
}

// keep stores a point and finds the pause before it.
func (p *pace) keep(q point) {
	if p.n == 0 {
		p.first = q
	} else {
		p.interval(p.last(), q)
	}
	if p.n == mostPoints {
		p.thin()
	}
	q.n = p.count
	q.paused, q.skipped = p.paused, p.skipped
	p.kept[p.n] = q
	p.n++
	p.count++
	if p.count == 6 {
		p.judgeFirst()
	}
}

// thin drops the points without which the gap between their neighbours is still small.
func (p *pace) thin() {
	n := p.n
	p.n = 1
	for i := 1; i < n; i++ {
		if i+1 == n || perAge*(p.kept[i+1].n-p.last().n) > p.count-p.kept[i+1].n {
			p.kept[p.n] = p.kept[i]
			p.n++
		}
	}
}

// last returns the latest point kept.
func (p *pace) last() point { return p.kept[p.n-1] }

// interval examines the time from a to b. An unusually long interval counts as a pause,
// unless the following intervals are as long.
func (p *pace) interval(a, b point) {
	seconds, steps := b.at-a.at, b.done-a.done
	excess, jump := p.judge(seconds, steps, p.besides)
	if jump > 0 {
		p.skipped += jump
		return
	}
	if excess == 0 {
		p.inRow = 0
		p.remember(seconds / steps)
		return
	}
	if p.inRow == again { // these were no pauses, because the program is permanently slower
		for i, e := range p.streak {
			p.shift(p.n-again+i, -e, 0)
		}
		p.inRow, p.usualN = 0, 0
		p.remember(seconds / steps)
		return
	}
	p.streak[p.inRow] = excess
	p.inRow++
	p.paused += excess
}

// judge returns the seconds of an interval that were a pause, or the number of its steps
// that were jumped over.
func (p *pace) judge(seconds, steps float64, aside bool) (excess, jump float64) {
	usual, n := p.median()
	if n < 4 {
		return 0, 0
	}
	limit := pauseAlone
	if aside {
		limit = pauseSeen
	}
	each := seconds / steps
	switch {
	case each > limit*usual:
		return seconds - steps*usual, 0
	case each < usual/skip:
		return 0, steps - seconds/usual
	}
	return 0, 0
}

// judgeFirst examines the first interval once there are others to compare it with.
// Compilation and the first batch make it long, and a resumed program jumps in it.
func (p *pace) judgeFirst() {
	each := func(i int) float64 {
		return (p.kept[i+1].at - p.kept[i].at) / (p.kept[i+1].done - p.kept[i].done)
	}
	usual := []float64{each(1), each(2), each(3), each(4)}
	slices.Sort(usual)
	seconds, steps, middle := p.kept[1].at-p.kept[0].at, p.kept[1].done-p.kept[0].done, usual[2]
	switch {
	case each(0) > pauseAlone*middle:
		p.shift(1, seconds-steps*middle, 0)
	case each(0) < middle/skip:
		p.shift(1, 0, steps-seconds/middle)
	}
}

// shift adds to the pauses, and to the steps jumped over, before all points from i on.
func (p *pace) shift(i int, seconds, steps float64) {
	p.paused += seconds
	p.skipped += steps
	for ; i < p.n; i++ {
		p.kept[i].paused += seconds
		p.kept[i].skipped += steps
	}
}

// remember stores a usual time per step.
func (p *pace) remember(secondsPerStep float64) {
	p.usual[p.usualN%len(p.usual)] = secondsPerStep
	p.usualN++
}

// median returns the usual time in seconds per step, and the number of intervals it is
// from.
func (p *pace) median() (float64, int) {
	n := min(p.usualN, len(p.usual))
	if n == 0 {
		return 0, 0
	}
	var sorted [len(p.usual)]float64
	copy(sorted[:n], p.usual[:n])
	slices.Sort(sorted[:n])
	return sorted[n/2], n
}

// points returns the points kept and the open one, oldest first. They are valid until the
// next call.
func (p *pace) points() []point {
	if p.n == 0 {
		return nil
	}
	p.kept[p.n] = p.openPoint()
	return p.kept[:p.n+1]
}

// between returns the points from one time to another, oldest first.
func (p *pace) between(from, until float64) []point {
	all := p.points()
	for len(all) > 0 && all[0].at < from {
		all = all[1:]
	}
	for len(all) > 0 && all[len(all)-1].at > until {
		all = all[:len(all)-1]
	}
	return all
}

// latest returns the latest points, oldest first. They cover at least n intervals and
// least seconds, if there are as many.
func (p *pace) latest(n int, least float64) []point {
	all := p.points()
	begin := max(0, len(all)-n-1)
	for begin > 0 && all[len(all)-1].at-all[begin].at < least {
		begin--
	}
	return all[begin:]
}

// openPoint returns the open point in the form in which it would be kept.
func (p *pace) openPoint() point {
	q := p.open
	a := p.last()
	excess, jump := p.judge(q.at-a.at, q.done-a.done, p.besides)
	q.paused, q.skipped = p.paused+excess, p.skipped+jump
	return q
}

// overall returns the mean speed since the start, pauses included.
func (p *pace) overall() (float64, bool) {
	if p.n == 0 {
		return 0, false
	}
	q := p.openPoint()
	seconds, steps := q.at-p.first.at, q.done-q.skipped-p.first.done
	return steps / seconds, seconds > 0 && steps > 0
}

// overhead returns the ratio of the time of pauses to the time of work so far.
func (p *pace) overhead() float64 {
	seconds := p.open.at - p.first.at - p.paused
	if p.n == 0 || seconds <= 0 {
		return 0
	}
	return max(0, p.paused/seconds)
}
