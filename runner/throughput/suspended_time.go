package throughput

import (
	"time"

	"carma/internal/units"
)

// suspendedSpan is an interval in which an attempt was suspended. to is 0 while the
// attempt is suspended.
type suspendedSpan struct{ from, to units.Instant }

// Suspend records that the attempt is suspended. A nil follower ignores it.
func (f *Follower) Suspend(at units.Instant) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := len(f.gone); n == 0 || f.gone[n-1].to > 0 {
		f.gone = append(f.gone, suspendedSpan{from: at})
	}
}

// Resume records that the attempt runs again. A nil follower ignores it.
func (f *Follower) Resume(at units.Instant) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := len(f.gone); n > 0 && f.gone[n-1].to == 0 {
		f.gone[n-1].to = max(at, f.gone[n-1].from)
	}
}

// lived returns the reader's time, which does not advance while the attempt is suspended,
// because a suspension must not look like a pause of the program.
func (f *Follower) lived(at units.Instant) time.Time {
	out := at
	for _, g := range f.gone {
		switch {
		case at <= g.from:
		case g.to == 0 || at < g.to:
			out -= at - g.from
		default:
			out -= g.to - g.from
		}
	}
	return out.Time()
}

// passed returns the daemon's time at which the reader's clock showed lived.
func (f *Follower) passed(lived time.Time) time.Time {
	if lived.IsZero() {
		return lived
	}
	for _, g := range f.gone {
		if g.to > 0 && lived.After(g.from.Time()) {
			lived = lived.Add(g.to.Sub(g.from))
		}
	}
	return lived
}
