package progress

import "slices"

// point is a count at a time. paused is how much of the time until then were
// pauses, skipped how much of the count was not worked for: steps of a run
// before, which a resumed program jumps over.
type point struct {
	n             int
	at, paused    float64
	done, skipped float64
}

// worked is the time without pauses between two points, did the count.
func worked(a, b point) float64 { return (b.at - a.at) - (b.paused - a.paused) }
func did(a, b point) float64    { return (b.done - a.done) - (b.skipped - a.skipped) }

// How points are kept: every point, every second, every fourth and so on, of
// each the latest perLevel. So any time since the start has points near it, at
// most a sixteenth of the time that has passed since.
const (
	levels   = 16
	perLevel = 32
)

// gap is the least time between two points, in seconds: what comes within it
// counts as one, with the last count. A buffer that is emptied is one point.
const gap = 1.0

// pause is how many times longer than usual an interval is that holds a pause;
// pauseSeen is that number if an evaluation was seen in it. skip is how many
// times shorter one is that jumps. Neighbours on a GPU may make a task as much
// slower, but then for longer than again intervals.
const (
	pauseAlone = 3.0
	pauseSeen  = 1.5
	skip       = 20.0
)

// pace keeps the speed of a counter.
type pace struct {
	kept  [levels][perLevel]point
	count int // of points kept
	open  point
	began bool
	since float64 // when open was opened
	first point

	usual   [16]float64 // seconds per step of the latest intervals
	usualN  int
	paused  float64
	skipped float64
	streak  [again]float64 // pauses taken out of the latest intervals, one after the other
	inRow   int
	aside   bool // something else than training was seen since the last count
	besides bool // ... before the open point
}

// add takes a count. It reports whether it has risen.
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
	q.n = p.count
	if p.count == 0 {
		p.first = q
	} else {
		p.interval(p.last(), q)
	}
	q.paused, q.skipped = p.paused, p.skipped
	for k := 0; k < levels && q.n%(1<<k) == 0; k++ {
		p.kept[k][(q.n>>k)%perLevel] = q
	}
	p.count++
	if p.count == 6 {
		p.judgeFirst()
	}
}

// last is the latest point kept.
func (p *pace) last() point { return p.kept[0][(p.count-1)%perLevel] }

// interval looks at the time from a to b: what is longer than usual is a pause,
// unless it goes on.
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
	if p.inRow == again { // no pauses: slower for good
		for i, e := range p.streak {
			p.shift(p.count-again+i, -e)
		}
		p.inRow, p.usualN = 0, 0
		p.remember(seconds / steps)
		return
	}
	p.streak[p.inRow] = excess
	p.inRow++
	p.paused += excess
}

// judge tells how much of an interval was a pause, in seconds, or how many of
// its steps were jumped over.
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

// judgeFirst looks at the first interval once there is something to compare
// with: compilation and the first batch make it long, resuming makes it jump.
func (p *pace) judgeFirst() {
	a, b := p.kept[0][0], p.kept[0][1]
	seconds, steps := b.at-a.at, b.done-a.done
	usual := make([]float64, 0, 5)
	for i := 1; i+1 < p.count; i++ {
		c, d := p.kept[0][i], p.kept[0][i+1]
		usual = append(usual, (d.at-c.at)/(d.done-c.done))
	}
	slices.Sort(usual)
	middle := usual[len(usual)/2]
	switch each := seconds / steps; {
	case each > pauseAlone*middle:
		p.shift(1, seconds-steps*middle)
	case each < middle/skip:
		jump := steps - seconds/middle
		p.skipped += jump
		p.each(1, func(q *point) { q.skipped += jump })
	}
}

// shift adds to the pauses before all points from number n on.
func (p *pace) shift(n int, seconds float64) {
	p.paused += seconds
	p.each(n, func(q *point) { q.paused += seconds })
}

// each calls f for all points kept from number n on.
func (p *pace) each(n int, f func(*point)) {
	for k := range p.kept {
		for i := range p.kept[k] {
			if q := &p.kept[k][i]; q.n >= n && q.n < p.count {
				f(q)
			}
		}
	}
}

// remember keeps what is usual.
func (p *pace) remember(secondsPerStep float64) {
	p.usual[p.usualN%len(p.usual)] = secondsPerStep
	p.usualN++
}

// median is what is usual, in seconds per step, and of how many intervals.
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

// level returns the points kept of a level, oldest first, appended to to.
func (p *pace) level(to []point, k int) []point {
	n := (p.count + 1<<k - 1) >> k // ever kept there
	for i := max(0, n-perLevel); i < n; i++ {
		to = append(to, p.kept[k][i%perLevel])
	}
	return to
}

// between returns the points from one time to another, at most perLevel and
// two, oldest first.
func (p *pace) between(from, until float64) []point {
	all := make([]point, 0, perLevel+2)
	for k := range levels {
		all = p.level(all[:0], k)
		if len(all) < perLevel || all[0].at <= from {
			break
		}
	}
	return slices.DeleteFunc(p.toNow(all), func(q point) bool { return q.at < from || q.at > until })
}

// latest returns the latest points, oldest first: of at least n intervals and
// least seconds, if there are as many.
func (p *pace) latest(n int, least float64) []point {
	all := make([]point, 0, perLevel+2)
	for k := range levels {
		all = p.toNow(p.level(all[:0], k))
		if len(all) < perLevel || all[len(all)-1].at-all[0].at >= least {
			break
		}
	}
	begin := max(0, len(all)-n-1)
	for begin > 0 && all[len(all)-1].at-all[begin].at < least {
		begin--
	}
	return all[begin:]
}

// toNow appends the newest points to those of a level.
func (p *pace) toNow(all []point) []point {
	if p.count == 0 {
		return all
	}
	if all[len(all)-1].n < p.count-1 {
		all = append(all, p.last())
	}
	return append(all, p.openPoint())
}

// openPoint is the point that is not kept yet, as it would be.
func (p *pace) openPoint() point {
	q := p.open
	a := p.last()
	excess, jump := p.judge(q.at-a.at, q.done-a.done, p.besides)
	q.n, q.paused, q.skipped = p.count, p.paused+excess, p.skipped+jump
	return q
}

// overall is the mean speed since the start, pauses included.
func (p *pace) overall() (float64, bool) {
	if p.count == 0 {
		return 0, false
	}
	q := p.openPoint()
	seconds, steps := q.at-p.first.at, q.done-q.skipped-p.first.done
	return steps / seconds, seconds > 0 && steps > 0
}

// overhead is the time of pauses per time of work so far.
func (p *pace) overhead() float64 {
	seconds := p.open.at - p.first.at - p.paused
	if p.count == 0 || seconds <= 0 {
		return 0
	}
	return max(0, p.paused/seconds)
}
