package runner

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
func (r *Runner) decided(seq int64, ev model.Event, decisions []model.Decision) {
	r.seq = seq
	for n, d := range decisions {
		kind, body, err := model.EncodeDecision(d)
		if err != nil {
			r.Log.Error().Err(err).Str("decision", kind).Msg("a decision cannot be encoded")
			continue
		}
		r.pending.Decisions = append(r.pending.Decisions, journal.Decision{Seq: seq, N: n, Kind: kind, Body: body})
		f, ok := d.(model.Finish)
		if !ok {
			continue
		}
		rec, _ := r.records.Get(f.Task.ID)
		if rec == nil {
			continue // the record was removed after the task had finished
		}
		r.pending.Tasks = append(r.pending.Tasks, rec.WithTask(f.Task).Row())
	}
	r.pending.Decided = seq
	r.due = append(r.due, committedStep{ev, decisions})
}

// flushDue stores the decisions and carries them out. If all of them are WakeAt, they are
// carried out at once and stored by the next commit. If the disk is full, no decision is
// carried out until it can be stored.
func (r *Runner) flushDue() error {
	for _, d := range r.due {
		for _, decision := range d.decisions {
			if _, ok := decision.(model.SetTimer); !ok {
				return r.flush()
			}
		}
	}
	r.carryDue()
	return nil
}

// flush stores the pending decisions and carries them out. A full disk is no
// error: the loop tries again.
func (r *Runner) flush() error {
	err := r.store()
	if errors.Is(err, journal.ErrFull) {
		r.isFull(err)
		return nil
	}
	if err == nil {
		r.stored()
	}
	return err
}

// store commits the pending decisions and records.
func (r *Runner) store() error {
	if !r.unstored() {
		return nil
	}
	_, err := r.Journal.Commit(r.pending)
	if r.releaseReserve(err) {
		_, err = r.Journal.Commit(r.pending)
	}
	failpoint.Hit("decisions-stored")
	return err
}

func (r *Runner) unstored() bool { return len(r.pending.Decisions)+len(r.pending.Tasks) > 0 }

// stored is called after a commit, when everything pending is durable.
func (r *Runner) stored() {
	if r.full {
		r.full = false
		r.unwritable.Store(false)
		r.Log.Info().Msg("the journal can be written again")
	}
	r.pending = journal.Batch{}
	r.carryDue()
}

// isFull marks the journal as unwritable after a commit that found no room.
func (r *Runner) isFull(err error) {
	if !r.full {
		r.full = true
		r.unwritable.Store(true)
		r.Log.Error().Err(err).Msg("the journal cannot be written; submissions are refused, running tasks go on")
	}
}

// carryDue carries out the durable decisions, in order.
func (r *Runner) carryDue() {
	all := r.due
	r.due = nil
	for i, d := range all {
		if i > 0 {
			failpoint.Hit("between-carryouts")
		}
		r.refresh(d.event)
		r.reportSuspension(d.event)
		r.carryOut(d.decisions)
		r.observe(d.event, d.decisions)
	}
}
