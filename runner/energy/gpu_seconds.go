package energy

import (
	"maps"

	"carma/internal/units"
)

// countSeconds adds the GPU-seconds of an attempt up to now to the GPU-seconds of its user. The
// time between two readings counts in full, unlike the time of a power draw, because the
// attempt is known to have run.
func (b *Accounts) countSeconds(now units.Instant, account *attemptAccount) {
	if !account.runs || len(account.gpus) == 0 || now <= account.counted {
		return
	}
	b.held[account.user] += float64(len(account.gpus)) * now.Sub(account.counted).Seconds()
	account.counted, b.dirty = now, true
}

// countAllSeconds calls countSeconds for all attempts.
func (b *Accounts) countAllSeconds(now units.Instant) {
	for _, account := range b.open {
		b.countSeconds(now, account)
	}
}

// Sums returns the joules and the GPU-seconds of each user's tasks up to now, and the
// joules of GPUs without tasks. These sums only grow, also over restarts.
func (b *Accounts) Sums(now units.Instant) (joules, held map[string]float64, idle float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.countAllSeconds(now)
	return maps.Clone(b.users), maps.Clone(b.held), b.idle
}
