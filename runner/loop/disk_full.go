package loop

import (
	"errors"

	"carma/runner/journal"
)

// releaseReserve is called with the error of a write. If the disk was full, it gives
// up the journal's spare room. It reports whether the write may work now.
func (l *Loop) releaseReserve(err error) bool {
	if !errors.Is(err, journal.ErrFull) || !l.journal.GiveUpSpare() {
		return false
	}
	l.tight.Store(true)
	l.log.Error().Err(err).Msg("the disk is full: the journal lives on its spare room; submissions are refused, tasks can be stopped and removed, and end")
	return true
}

// deferForDisk answers the changes that must wait until there is spare room again,
// and returns the others.
func (l *Loop) deferForDisk(batch []*Change) []*Change {
	if !l.tight.Load() {
		return batch
	}
	if l.journal.KeepSpare() {
		l.tight.Store(false)
		l.log.Info().Msg("there is room on the disk again")
		return batch
	}
	var can []*Change
	for _, c := range batch {
		if c.Keep || c.Vital {
			can = append(can, c)
		} else {
			c.answer(ErrFull)
		}
	}
	return can
}

// Note stores a value in the journal's meta. A full disk is only logged: the
// value is not worth failing for.
func (l *Loop) Note(key string, value []byte) error {
	err := l.journal.SetMeta(key, value)
	if l.releaseReserve(err) {
		err = l.journal.SetMeta(key, value)
	}
	if errors.Is(err, journal.ErrFull) {
		l.log.Error().Err(err).Str("key", key).Msg("the disk is full: a value cannot be stored")
		return nil
	}
	return err
}
