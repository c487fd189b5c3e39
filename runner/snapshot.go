package runner

import (
	"time"

	"carma/internal/failpoint"
	"carma/mapper"
	"carma/runner/journal"
)

// maybeSnapshot stores a snapshot beside the loop when the last one is old.
func (r *Runner) maybeSnapshot() {
	if r.sinceSnap < snapshotEvery {
		return
	}
	r.sinceSnap = 0
	state, seq := r.state.Clone(), r.seq
	r.snapping.Wait() // the previous snapshot has long ended
	r.snapping.Go(func() {
		if err := r.snapshot(state, seq); err != nil {
			r.Log.Warn().Err(err).Msg("no snapshot could be stored; a restart will take longer")
		}
	})
}

func (r *Runner) snapshotNow() error {
	if r.seq == 0 {
		return nil
	}
	return r.snapshot(r.state, r.seq)
}

// Events are kept for `carma history` and for replays: at least keepEvents of them, and all
// younger than keepEventsFor.
const (
	keepEvents    = 200_000
	keepEventsFor = 30 * 24 * time.Hour
)

func (r *Runner) snapshot(state *mapper.State, seq int64) error {
	body, err := state.MarshalJSON() // json.Marshal would check it and copy it twice
	if err != nil {
		return err
	}
	failpoint.Hit("snapshot-begins")
	if err := r.Journal.Snapshot(seq, int64(state.Now()), body); err != nil {
		return err
	}
	failpoint.Hit("snapshot-stored")
	for {
		n, err := r.Journal.Prune(keepEvents, int64(state.Now().Add(-keepEventsFor)))
		if err != nil || n < journal.PruneLimit {
			return err
		}
	}
}
