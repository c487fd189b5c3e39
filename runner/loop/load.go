package loop

import (
	"fmt"

	"carma/mapper/model"
	"carma/runner/journal"
	"carma/runner/record"
)

// Load rebuilds the state: the newest snapshot, then the events after it with
// their stored decisions. Events without stored decisions are decided now.
func (l *Loop) Load() error {
	snap, err := l.journal.Load()
	if err != nil {
		return err
	}
	if snap.Damaged != nil {
		l.log.Warn().Err(snap.Damaged).Msg("a damaged snapshot was passed over")
	}
	if err := l.loadRecords(); err != nil {
		return err
	}
	if err := l.rebuild(snap); err != nil {
		return err
	}
	if err := l.state.Audit(); err != nil {
		return fmt.Errorf("the state after replaying the journal is not sound: %w", err)
	}
	for _, t := range l.state.Tasks() {
		if rec, _ := l.records.Get(t.ID); rec != nil {
			l.records.Put(rec.WithTask(t))
		}
	}
	for _, d := range l.due { // tasks that finished in the replay are not in the state
		for _, decision := range d.decisions {
			f, ok := decision.(model.Finish)
			if !ok {
				continue
			}
			if rec, _ := l.records.Get(f.Task.ID); rec != nil {
				l.records.Put(rec.WithTask(f.Task))
			}
		}
	}
	return nil
}

func (l *Loop) loadRecords() error {
	unfinished, err := l.journal.Tasks(journal.Filter{Unfinished: true})
	if err != nil {
		return err
	}
	recent, err := l.journal.Tasks(journal.Filter{Limit: record.KeepFinished})
	if err != nil {
		return err
	}
	for _, rows := range [][]journal.TaskRow{recent, unfinished} {
		for i := len(rows) - 1; i >= 0; i-- {
			rec, err := record.Decode(rows[i])
			if err != nil {
				return err
			}
			if old, _ := l.records.Get(rec.ID()); old == nil {
				l.records.Put(rec)
			}
		}
	}
	return nil
}

// KeepReserve makes the journal's spare file. Without room for it, the loop refuses what it
// refuses on a full disk.
func (l *Loop) KeepReserve() {
	if l.journal.KeepSpare() {
		return
	}
	l.tight.Store(true)
	l.log.Error().Msg("the disk has no room for the journal's spare file (journal-reserve): submissions are refused until it has; tasks can be stopped and removed, and end")
}
