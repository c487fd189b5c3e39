package loop

import (
	"carma/mapper"
	"carma/runner/journal"
	"carma/runner/verify"
)

// rebuild replays the events after a snapshot. If this program decides like the program
// that wrote the journal, the state is exactly the same. So rebuild first tries to derive
// the decisions. If they differ, it applies the stored ones.
func (l *Loop) rebuild(snap journal.Snapshot) error {
	other, err := l.replay(snap, false)
	if err != nil || other == nil {
		return err
	}
	l.log.Info().Str("difference", other.String()).Msg("another version has written the journal; what it has decided stands")
	_, err = l.replay(snap, true)
	return err
}

// replay rebuilds the state from a snapshot and the events after it. If follow is set, it
// applies the stored decisions. Otherwise it derives the decisions, compares them with the
// stored ones, and ends at the first difference.
func (l *Loop) replay(snap journal.Snapshot, follow bool) (*verify.Difference, error) {
	l.state, l.seq = mapper.New(l.options), snap.Seq
	if snap.Body != nil {
		if err := l.state.UnmarshalJSON(snap.Body); err != nil {
			return nil, err
		}
	}
	last, err := l.journal.Decided()
	if err != nil {
		return nil, err
	}
	for p, err := range verify.History(&l.journal.Reader, snap.Seq) {
		switch {
		case err != nil:
			return nil, err
		case p.Seq > last: // no decision on this event has been carried out
			l.decided(p.Seq, p.Event, l.state.Step(p.Event))
		case follow:
			l.state.Apply(p.Event, p.Decided)
			l.seq = p.Seq
		default:
			if d := verify.Compare(p, l.state.Step(p.Event), l.state.DecisionFormat()); d != nil {
				return d, nil
			}
			l.seq = p.Seq
		}
	}
	return nil, nil
}
