package loop

import (
	"errors"

	"carma/internal/failpoint"
	"carma/mapper/model"
	"carma/runner/journal"
)

// committedStep is an applied event with its decisions. The decisions are carried out
// once they are durable. A daemon that dies before that has carried out none of them. The
// next daemon, of any later version, uses the stored decisions.
type committedStep struct {
	event     model.Event
	decisions []model.Decision
}

// decided adds the decisions on an event to the next commit and to the decisions that are
// carried out after it. A replay calls it too, for events without stored decisions.
func (l *Loop) decided(seq int64, ev model.Event, decisions []model.Decision) {
	l.seq = seq
	for n, d := range decisions {
		kind, body, err := model.EncodeDecision(d)
		if err != nil {
			l.log.Error().Err(err).Str("decision", kind).Msg("a decision cannot be encoded")
			continue
		}
		l.pending.Decisions = append(l.pending.Decisions, journal.Decision{Seq: seq, N: n, Kind: kind, Body: body})
		f, ok := d.(model.Finish)
		if !ok {
			continue
		}
		rec, _ := l.records.Get(f.Task.ID)
		if rec == nil {
			continue // the record was removed after the task had finished
		}
		l.pending.Tasks = append(l.pending.Tasks, rec.WithTask(f.Task).Row())
	}
	l.pending.Decided = seq
	l.due = append(l.due, committedStep{ev, decisions})
}

// flushDue stores the decisions and carries them out. If all of them are WakeAt, they are
// carried out at once and stored by the next commit. If the disk is full, no decision is
// carried out until it can be stored.
func (l *Loop) flushDue() error {
	for _, d := range l.due {
		for _, decision := range d.decisions {
			if _, ok := decision.(model.SetTimer); !ok {
				return l.Flush()
			}
		}
	}
	l.carryDue()
	return nil
}

// Flush stores the pending decisions and carries them out. A full disk is no
// error: the loop tries again.
func (l *Loop) Flush() error {
	err := l.store()
	if errors.Is(err, journal.ErrFull) {
		l.isFull(err)
		return nil
	}
	if err == nil {
		l.stored()
	}
	return err
}

// store commits the pending decisions and records.
func (l *Loop) store() error {
	if !l.unstored() {
		return nil
	}
	_, err := l.journal.Commit(l.pending)
	if l.releaseReserve(err) {
		_, err = l.journal.Commit(l.pending)
	}
	failpoint.Hit("decisions-stored")
	return err
}

func (l *Loop) unstored() bool { return len(l.pending.Decisions)+len(l.pending.Tasks) > 0 }

// stored is called after a commit, when everything pending is durable.
func (l *Loop) stored() {
	if l.full {
		l.full = false
		l.unwritable.Store(false)
		l.log.Info().Msg("the journal can be written again")
	}
	l.pending = journal.Batch{}
	l.carryDue()
}

// isFull marks the journal as unwritable after a commit that found no room.
func (l *Loop) isFull(err error) {
	if !l.full {
		l.full = true
		l.unwritable.Store(true)
		l.log.Error().Err(err).Msg("the journal cannot be written; submissions are refused, running tasks go on")
	}
}

// carryDue carries out the durable decisions, in order.
func (l *Loop) carryDue() {
	all := l.due
	l.due = nil
	for i, d := range all {
		if i > 0 {
			failpoint.Hit("between-carryouts")
		}
		l.refresh(d.event, d.decisions)
		l.hooks.CarryOut(d.event, d.decisions)
	}
}
