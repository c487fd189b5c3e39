package runner

import (
	"context"
	"errors"
	"sync"

	"carma/runner/journal"
)

// checked is the result of checking the whole journal, which is done beside the
// daemon's work. Opening a small journal has checked all of it already.
type checked struct {
	mu   sync.Mutex
	over bool
	err  error
}

func (c *checked) set(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over, c.err = true, err
}

func (c *checked) result() (over bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.over, c.err
}

// checkWhole checks a journal that is too large to be checked before the start. It checks
// the journal once, and pauses for at least half of the time.
func (r *Runner) checkWhole(ctx context.Context, small bool) {
	var err error
	if !small {
		err = r.Journal.CheckBeside(ctx)
	}
	switch {
	case ctx.Err() != nil:
		return
	case errors.Is(err, journal.ErrDamaged):
		r.Log.Error().Err(err).Str("remedy", journal.RepairRemedy).Msg("the journal is damaged")
	case err != nil:
		r.Log.Warn().Err(err).Msg("the journal could not all be checked")
	case !small:
		r.Log.Info().Msg("all of the journal has been checked: it is sound")
	}
	r.checked.set(err)
}
