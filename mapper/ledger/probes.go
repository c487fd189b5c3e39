package ledger

import (
	"time"

	"carma/internal/units"
	"carma/mapper/model"
)

// StartBackoff returns the time until a task is tried again after failed starts.
func (in *inventory) StartBackoff(t *model.Task) time.Duration {
	return min(in.NextProbe()<<min(max(t.StartFailures-1, 0), 20), MaxProbeInterval)
}

// MaxProbeInterval is the longest time between two probe launches.
const MaxProbeInterval = 5 * time.Minute

// NextProbe returns the time between the pause and the first probe launch. It doubles
// with each failed probe. It is 5 s by default, half of the back-off of 10 s.
func (in *inventory) NextProbe() time.Duration {
	return min(max(in.opt.Backoff/2, time.Millisecond), MaxProbeInterval)
}

// ProbeAt sets the earliest instant of the next probe launch of a breaker.
func (l *Ledger) ProbeAt(i *model.Breaker, at units.Instant) {
	i.Test = at
	l.SetTimer(at, Timer{})
}
