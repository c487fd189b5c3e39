package runner

import (
	"encoding/json"
	"errors"
	"time"

	"carma/mapper"
	"carma/runner/clock"
	"carma/runner/journal"
)

// bootKey is the key in the journal's meta under which a start stores the daemon's time
// and the machine's uptime.
const bootKey = "boot"

// restoreClock sets the daemon's time at a start. See [clock.Clock.Restore].
func (r *Runner) restoreClock(up clock.Uptime) error {
	before, err := lastStart(r.Journal)
	if err != nil {
		return err
	}
	if r.opt.SetSpeed != nil || !placed(r.loop.State()) {
		before = nil
	}
	start, warning, lag := r.Clock.Restore(before, up, r.loop.State().Now())
	if warning != "" {
		r.Log.Warn().Stringer("by", lag.Round(time.Second)).Msg(warning)
	}
	b, err := json.Marshal(start)
	if err != nil {
		return err
	}
	return r.loop.Note(bootKey, b)
}

// lastStart returns the last start in the journal, or nil if there is none.
func lastStart(j *journal.Journal) (*clock.Start, error) {
	b, err := j.Meta(bootKey)
	if errors.Is(err, journal.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s := new(clock.Start)
	if err := json.Unmarshal(b, s); err != nil {
		return nil, err
	}
	return s, nil
}

// placed reports whether any task is placed.
func placed(s *mapper.State) bool {
	for _, t := range s.Tasks() {
		if t.Alive() != nil {
			return true
		}
	}
	return false
}
