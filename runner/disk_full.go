package runner

import (
	"errors"

	"carma/runner/journal"
)

// releaseReserve is called with the error of a write. If the disk was full, it gives
// up the journal's spare room. It reports whether the write may work now.
func (r *Runner) releaseReserve(err error) bool {
	if !errors.Is(err, journal.ErrFull) || !r.Journal.GiveUpSpare() {
		return false
	}
	r.tight.Store(true)
	r.Log.Error().Err(err).Msg("the disk is full: the journal lives on its spare room; submissions are refused, tasks can be stopped and removed, and end")
	return true
}

// deferForDisk answers the changes that must wait until there is spare room again,
// and returns the others.
func (r *Runner) deferForDisk(batch []*change) []*change {
	if !r.tight.Load() {
		return batch
	}
	if r.Journal.KeepSpare() {
		r.tight.Store(false)
		r.Log.Info().Msg("there is room on the disk again")
		return batch
	}
	var can []*change
	for _, c := range batch {
		if c.keep || c.vital {
			can = append(can, c)
		} else {
			c.answer(errFull)
		}
	}
	return can
}

// note stores a value in the journal's meta. A full disk is only logged: the
// value is not worth failing for.
func (r *Runner) note(key string, value []byte) error {
	err := r.Journal.SetMeta(key, value)
	if r.releaseReserve(err) {
		err = r.Journal.SetMeta(key, value)
	}
	if errors.Is(err, journal.ErrFull) {
		r.Log.Error().Err(err).Str("key", key).Msg("the disk is full: a value cannot be stored")
		return nil
	}
	return err
}
