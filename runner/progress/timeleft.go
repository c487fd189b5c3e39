package progress

import "math"

// timeLeft computes the total from the printed time to the end. The program knows the
// total, and computes this time from the speed of the whole run so far.
type timeLeft struct {
	total  float64 // in the counter's unit, or 0 if unknown
	spread float64 // relative deviation of the latest estimates from their mean

	seen   bool
	first  float64 // the epoch in which a time was first seen
	least  float64 // the shortest time since the last rise
	most   float64 // the longest time
	anew   bool    // the time ran out and restarted, so it is the time to an epoch's end
	counts int
}

// steady reports whether the estimates agree.
func (l *timeLeft) steady() bool { return l.counts >= 3 && l.spread <= 0.04 }

// follow processes a printed time in an epoch.
func (l *timeLeft) follow(left, epoch float64) {
	if !l.seen {
		l.seen, l.first, l.least, l.most = true, epoch, left, left
	}
	if l.least < 0.2*l.most && left > 2*l.least+10 {
		l.anew, l.least = true, left
	}
	l.least, l.most = min(l.least, left), max(l.most, left)
}

// scopeOf returns the range of a printed time.
func (l *timeLeft) scopeOf(m mark, e *epochs) scope {
	switch {
	case l.anew:
		return scopeEpoch
	case m.leftScope != scopeUnknown && (m.leftScope != scopeRun || !e.known || m.form == Brackets || m.epoch >= 0):
		return m.leftScope
	case !e.known, e.total == 1, e.index > l.first:
		return scopeRun
	}
	return scopeUnknown
}

// estimate processes the time to the end in a line.
func (c *counters) estimate(s *pace, m mark, done float64) {
	if m.left < 0 {
		return
	}
	c.left.follow(m.left, c.epochs.index)
	if c.left.scopeOf(m, &c.epochs) != scopeRun {
		c.left.total = 0
		return
	}
	speed, ok := s.overall()
	if !ok || s.count <= enough {
		return
	}
	total := done + m.left*speed
	if c.left.total == 0 {
		c.left.total = total
	}
	c.left.spread += (math.Abs(total/c.left.total-1) - c.left.spread) / 8
	c.left.total += (total - c.left.total) / 8
	c.left.counts++
}
