package verify

import (
	"fmt"
	"iter"

	"carma/mapper/model"
	"carma/runner/journal"
)

// Step is an event of the journal with the decisions on it.
type Step struct {
	Seq     int64
	Event   model.Event
	Decided []model.Decision
}

// History yields the events after number after with their decisions.
func History(j *journal.Reader, after int64) iter.Seq2[Step, error] {
	return func(yield func(Step, error) bool) {
		next, stop := iter.Pull2(j.Decisions(after))
		defer stop()
		d, err, more := next()
		for ev, failed := range j.Events(after) {
			if failed != nil {
				yield(Step{}, failed)
				return
			}
			p := Step{Seq: ev.Seq}
			if p.Event, failed = model.DecodeEvent(ev.Kind, ev.Body); failed != nil {
				yield(Step{}, fmt.Errorf("journal event %d: %w", ev.Seq, failed))
				return
			}
			for ; more && err == nil && d.Seq == ev.Seq; d, err, more = next() {
				decision, failed := model.DecodeDecision(d.Kind, d.Body)
				if failed != nil {
					yield(Step{}, fmt.Errorf("journal event %d: decision %d: %w", ev.Seq, d.N, failed))
					return
				}
				p.Decided = append(p.Decided, decision)
			}
			if err != nil {
				yield(Step{}, err)
				return
			}
			if !yield(p, nil) {
				return
			}
		}
	}
}

// Difference is the first event on which this program decides differently from the
// program that wrote the journal.
type Difference struct {
	Seq       int64
	Was, Here string // the decisions, in JSON
}

// String says where the programs differ.
func (d *Difference) String() string {
	return fmt.Sprintf("on event %d it was decided %s, this program decides %s", d.Seq, d.Was, d.Here)
}

// Compare compares the decisions of a step with the recorded ones, by code and figures, and
// returns nil if they are equal. format is the format of the record.
func Compare(p Step, derived []model.Decision, format int) *Difference {
	if format < model.DecisionFormat {
		derived = model.InFormat(derived, format)
	}
	same := len(derived) == len(p.Decided)
	for i := 0; same && i < len(derived); i++ {
		same = model.SameDecision(p.Decided[i], derived[i])
	}
	if same {
		return nil
	}
	return &Difference{p.Seq, decisionsText(p.Decided), decisionsText(derived)}
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
