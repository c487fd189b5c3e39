package runner

import (
	"fmt"
	"iter"

	"carma/mapper"
	"carma/mapper/model"
	"carma/runner/journal"
)

// past is an event of the journal with the decisions on it.
type past struct {
	seq     int64
	event   model.Event
	decided []model.Decision
}

// history yields the events after number after with their decisions.
func history(j *journal.Reader, after int64) iter.Seq2[past, error] {
	return func(yield func(past, error) bool) {
		next, stop := iter.Pull2(j.Decisions(after))
		defer stop()
		d, err, more := next()
		for ev, failed := range j.Events(after) {
			if failed != nil {
				yield(past{}, failed)
				return
			}
			p := past{seq: ev.Seq}
			if p.event, failed = model.DecodeEvent(ev.Kind, ev.Body); failed != nil {
				yield(past{}, fmt.Errorf("journal event %d: %w", ev.Seq, failed))
				return
			}
			for ; more && err == nil && d.Seq == ev.Seq; d, err, more = next() {
				decision, failed := model.DecodeDecision(d.Kind, d.Body)
				if failed != nil {
					yield(past{}, fmt.Errorf("journal event %d: decision %d: %w", ev.Seq, d.N, failed))
					return
				}
				p.decided = append(p.decided, decision)
			}
			if err != nil {
				yield(past{}, err)
				return
			}
			if !yield(p, nil) {
				return
			}
		}
	}
}

// difference is the first event on which this program decides differently from the
// program that wrote the journal.
type difference struct {
	Seq       int64
	Was, Here string // the decisions, in JSON
}

func (d *difference) String() string {
	return fmt.Sprintf("on event %d it was decided %s, this program decides %s", d.Seq, d.Was, d.Here)
}

// differs compares the decisions of a step with the recorded ones, by code and figures, and
// returns nil if they are equal. format is the format of the record.
func differs(p past, derived []model.Decision, format int) *difference {
	if format < model.DecisionFormat {
		derived = model.InFormat(derived, format)
	}
	same := len(derived) == len(p.decided)
	for i := 0; same && i < len(derived); i++ {
		same = model.SameDecision(p.decided[i], derived[i])
	}
	if same {
		return nil
	}
	return &difference{p.seq, decisionsText(p.decided), decisionsText(derived)}
}

func decisionsText(decisions []model.Decision) string {
	text := ""
	for _, d := range decisions {
		kind, body, err := model.EncodeDecision(d)
		if err != nil {
			body = []byte(err.Error())
		}
		text += fmt.Sprintf(" %s %s", kind, body)
	}
	if text == "" {
		return "nothing"
	}
	return text[1:]
}

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
func (r *Runner) replay(snap journal.Snapshot, follow bool) (*difference, error) {
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
	for p, err := range history(&r.Journal.Reader, snap.Seq) {
		switch {
		case err != nil:
			return nil, err
		case p.seq > last: // no decision on this event has been carried out
			r.decided(p.seq, p.event, r.state.Step(p.event))
		case follow:
			r.state.Follow(p.event, p.decided)
			r.seq = p.seq
		default:
			if d := differs(p, r.state.Step(p.event), r.state.DecisionFormat()); d != nil {
				return d, nil
			}
			r.seq = p.seq
		}
	}
	return nil, nil
}
