package loop

import (
	"errors"

	"carma/runner/journal"
)

// MetaStore keeps values in the journal's meta.
type MetaStore struct{ Journal *journal.Journal }

// Put stores a value. The error is [ErrFull] if the disk has no room.
func (s MetaStore) Put(key string, value []byte) error {
	err := s.Journal.SetMeta(key, value)
	if errors.Is(err, journal.ErrFull) {
		return ErrFull
	}
	return err
}

// Get returns a value, or nil if there is none.
func (s MetaStore) Get(key string) ([]byte, error) {
	b, err := s.Journal.Meta(key)
	if errors.Is(err, journal.ErrNotFound) {
		return nil, nil
	}
	return b, err
}

// Drop removes a value, if there is one.
func (s MetaStore) Drop(key string) error {
	err := s.Journal.DropMeta(key)
	if errors.Is(err, journal.ErrNotFound) {
		return nil
	}
	return err
}
