package runner

import (
	"context"
	"errors"
	"sync"

	"carma/runner/journal"
)

// checked is what the check of the whole journal beside the daemon's work has
// found. Opening a small journal has checked all of it already.
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

// checkWhole reads a journal that is too large to be read before the start. It
// does so once, and half of the time at most.
func (r *Runner) checkWhole(ctx context.Context, small bool) {
	var err error
	if !small {
		err = r.Journal.CheckBeside(ctx)
	}
	switch {
	case ctx.Err() != nil:
		return
	case errors.Is(err, journal.ErrDamaged):
		r.Log.Error().Err(err).Str("remedy", checkedRemedy).Msg("the journal is damaged")
	case err != nil:
		r.Log.Warn().Err(err).Msg("the journal could not all be checked")
	case !small:
		r.Log.Info().Msg("all of the journal has been checked: it is sound")
	}
	r.checked.set(err)
}

// checkedRemedy is for a daemon that runs on a journal with damaged rows: what
// it needed of it was sound.
const checkedRemedy = "carma journal backup is refused as long as it is so; stop the daemon, tasks go on, and: carma journal repair"
