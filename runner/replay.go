package runner

import (
	"carma/mapper"
	"carma/runner/journal"
	"carma/runner/verify"
)

// rebuild replays the events after a snapshot. If this program decides like the program
// that wrote the journal, the state is exactly the same. So rebuild first tries to derive
// the decisions. If they differ, it applies the stored ones.
func (r *Runner) rebuild(snap journal.Snapshot) error {
	other, err := r.replay(snap, false)
	if err != nil || other == nil {
		return err
	}
	r.Log.Info().Str("difference", other.String()).Msg("another version has written the journal; what it has decided stands")
	_, err = r.replay(snap, true)
	return err
}

// replay rebuilds the state from a snapshot and the events after it. If follow is set, it
// applies the stored decisions. Otherwise it derives the decisions, compares them with the
// stored ones, and ends at the first difference.
func (r *Runner) replay(snap journal.Snapshot, follow bool) (*verify.Difference, error) {
	r.state, r.seq = mapper.New(r.opt.Mapper), snap.Seq
	if snap.Body != nil {
		if err := r.state.UnmarshalJSON(snap.Body); err != nil {
			return nil, err
		}
	}
	last, err := r.Journal.Decided()
	if err != nil {
		return nil, err
	}
	for p, err := range verify.History(&r.Journal.Reader, snap.Seq) {
		switch {
		case err != nil:
			return nil, err
		case p.Seq > last: // no decision on this event has been carried out
			r.decided(p.Seq, p.Event, r.state.Step(p.Event))
		case follow:
			r.state.Follow(p.Event, p.Decided)
			r.seq = p.Seq
		default:
			if d := verify.Compare(p, r.state.Step(p.Event), r.state.DecisionFormat()); d != nil {
				return d, nil
			}
			r.seq = p.Seq
		}
	}
	return nil, nil
}
