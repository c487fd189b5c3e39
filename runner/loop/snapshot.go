package loop

import (
	"time"

	"carma/internal/failpoint"
	"carma/mapper"
	"carma/runner/journal"
)

// maybeSnapshot stores a snapshot beside the loop when the last one is old.
func (l *Loop) maybeSnapshot() {
	if l.sinceSnap < snapshotEvery {
		return
	}
	l.sinceSnap = 0
	state, seq := l.state.Clone(), l.seq
	l.snapping.Wait() // the previous snapshot has long ended
	l.snapping.Go(func() {
		if err := l.snapshot(state, seq); err != nil {
			l.log.Warn().Err(err).Msg("no snapshot could be stored; a restart will take longer")
		}
	})
}

func (l *Loop) snapshotNow() error {
	if l.seq == 0 {
		return nil
	}
	return l.snapshot(l.state, l.seq)
}

// Events are kept for `carma history` and for replays: at least keepEvents of them, and all
// younger than keepEventsFor.
const (
	keepEvents    = 200_000
	keepEventsFor = 30 * 24 * time.Hour
)

func (l *Loop) snapshot(state *mapper.State, seq int64) error {
	body, err := state.MarshalJSON() // json.Marshal would check it and copy it twice
	if err != nil {
		return err
	}
	failpoint.Hit("snapshot-begins")
	if err := l.journal.Snapshot(seq, int64(state.Now()), body); err != nil {
		return err
	}
	failpoint.Hit("snapshot-stored")
	for {
		n, err := l.journal.Prune(keepEvents, int64(state.Now().Add(-keepEventsFor)))
		if err != nil || n < journal.PruneLimit {
			return err
		}
	}
}
