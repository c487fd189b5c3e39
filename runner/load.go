package runner

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"

	"carma/mapper/model"
	"carma/runner/journal"
	"carma/runner/record"
)

// loadInstance reads the identity and the clock of the data folder. It makes
// them if there are none.
func (r *Runner) loadInstance() error {
	id, err := r.Journal.Meta("instance")
	if errors.Is(err, journal.ErrNotFound) {
		b := make([]byte, 4)
		rand.Read(b)
		id = []byte(hex.EncodeToString(b))
		err = r.Journal.SetMeta("instance", id)
	}
	if err != nil {
		return err
	}
	r.instance = string(id)
	if !r.Journal.KeepSpare() {
		r.tight.Store(true)
		r.Log.Error().Msg("the disk has no room for the journal's spare file (journal-reserve): submissions are refused until it has; tasks can be stopped and removed, and end")
	}
	if r.opt.SetSpeed == nil {
		return nil // with real GPUs, the wall clock decides
	}
	switch b, err := r.Journal.Meta("clock"); {
	case err == nil:
		if err := r.Clock.UnmarshalJSON(b); err != nil {
			return err
		}
	case !errors.Is(err, journal.ErrNotFound):
		return err
	}
	return r.SetSpeed(r.opt.Speed)
}

// load rebuilds the state: the newest snapshot, then the events after it with
// their stored decisions. Events without stored decisions are decided now.
func (r *Runner) load() error {
	snap, err := r.Journal.Load()
	if err != nil {
		return err
	}
	if snap.Damaged != nil {
		r.Log.Warn().Err(snap.Damaged).Msg("a damaged snapshot was passed over")
	}
	if err := r.loadRecords(); err != nil {
		return err
	}
	if err := r.rebuild(snap); err != nil {
		return err
	}
	if err := r.state.Audit(); err != nil {
		return fmt.Errorf("the state after replaying the journal is not sound: %w", err)
	}
	for _, t := range r.state.Tasks() {
		if rec, _ := r.records.Get(t.ID); rec != nil {
			r.records.Put(rec.WithTask(t))
		}
	}
	for _, d := range r.due { // tasks that finished in the replay are not in the state
		for _, decision := range d.decisions {
			f, ok := decision.(model.Finish)
			if !ok {
				continue
			}
			if rec, _ := r.records.Get(f.Task.ID); rec != nil {
				r.records.Put(rec.WithTask(f.Task))
			}
		}
	}
	if err := r.findCompared(); err != nil {
		return err
	}
	maxRow, err := r.Journal.MaxTaskID()
	r.nextID = max(model.TaskID(maxRow), r.state.LastID()) + 1
	return err
}

func (r *Runner) loadRecords() error {
	unfinished, err := r.Journal.Tasks(journal.Filter{Unfinished: true})
	if err != nil {
		return err
	}
	recent, err := r.Journal.Tasks(journal.Filter{Limit: record.KeepFinished})
	if err != nil {
		return err
	}
	for _, rows := range [][]journal.TaskRow{recent, unfinished} {
		for i := len(rows) - 1; i >= 0; i-- {
			rec, err := record.Decode(rows[i])
			if err != nil {
				return err
			}
			if old, _ := r.records.Get(rec.ID()); old == nil {
				r.records.Put(rec)
			}
		}
	}
	return nil
}
