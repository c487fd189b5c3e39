package monitor

import (
	"time"

	"carma/internal/units"
)

// A program that reserves memory at its start, needed or not, jumps from little to
// most of a card within two samples, and stays there. JAX takes 75 % of a card,
// TensorFlow nearly all.
const (
	reservesFrom  = 0.1 // of the card: the CUDA context and little more
	reservesTo    = 0.7
	reservesStays = 2 * time.Minute // time without any change
)

// Preallocates reports whether an attempt seems to have reserved most of a card at its
// start. until is the end of the observations.
func (c *Curve) Preallocates(capacity units.Bytes, every time.Duration, until units.Instant) bool {
	if c == nil || len(c.At) == 0 || capacity <= 0 {
		return false
	}
	last := len(c.At) - 1
	share := func(i int) float64 { return float64(c.Used[i]) / float64(capacity) }
	if share(last) <= reservesTo || until.Sub(c.Began.Add(time.Duration(c.At[last]))) < reservesStays {
		return false
	}
	soon := int64(2 * max(every, time.Duration(c.Step)))
	switch {
	case last == 0:
		return true
	case share(last-1) < reservesFrom: // however long the previous step was
		return true
	case last == 1: // a sample before the first one would show no memory
		return c.At[1]+soon/2 <= soon
	}
	return share(last-2) < reservesFrom && c.At[last]-c.At[last-2] <= soon
}
