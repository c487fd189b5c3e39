package runner

import (
	"maps"

	"carma/internal/units"
)

// count adds the GPU-seconds of an attempt up to now to the GPU-seconds of its user. The
// time between two readings counts in full, unlike the time of a power draw, because the
// attempt is known to have run.
func (b *energyBook) count(now units.Instant, line *energyLine) {
	if !line.runs || len(line.gpus) == 0 || now <= line.counted {
		return
	}
	b.held[line.user] += float64(len(line.gpus)) * now.Sub(line.counted).Seconds()
	line.counted, b.dirty = now, true
}

// countAll calls count for all attempts.
func (b *energyBook) countAll(now units.Instant) {
	for _, line := range b.open {
		b.count(now, line)
	}
}

// sums returns the joules and the GPU-seconds of each user's tasks up to now, and the
// joules of GPUs without tasks. These sums only grow, also over restarts.
func (b *energyBook) sums(now units.Instant) (joules, held map[string]float64, idle float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.countAll(now)
	return maps.Clone(b.users), maps.Clone(b.held), b.idle
}
