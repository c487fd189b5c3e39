package mapper

import (
	"encoding/json"
	"fmt"

	"carma/internal/units"
	"carma/mapper/attempt"
	"carma/mapper/breaker"
	"carma/mapper/fairshare"
	"carma/mapper/ledger"
	"carma/mapper/model"
	"carma/mapper/place"
	"carma/mapper/predict"
	"carma/mapper/queue"
	"carma/mapper/reserve"
)

// snapshot is a state's form on disk. Each part has its section; JSON has all fields in
// one object.
type snapshot struct {
	Format int `json:"format"`
	ledgerSnapshot
	breakersSnapshot
	queueSnapshot
	reservationsSnapshot
	placerSnapshot
	predictorSnapshot
	usersSnapshot
	Paused *model.Cordon `json:"paused,omitempty"`
	attemptsSnapshot
	Again units.Instant `json:"again,omitempty"`
}

// The sections of the parts in packages of their own.
type (
	ledgerSnapshot       = ledger.Snapshot
	attemptsSnapshot     = attempt.Snapshot
	usersSnapshot        = fairshare.Snapshot
	predictorSnapshot    = predict.Snapshot
	placerSnapshot       = place.Snapshot
	breakersSnapshot     = breaker.Snapshot
	queueSnapshot        = queue.Snapshot
	reservationsSnapshot = reserve.Snapshot
)

// snapshotFormat is the format that this version writes. It reads all formats from 1 on:
// in format 1 reasons were sentences.
const snapshotFormat = 2

// MarshalJSON writes the whole state; UnmarshalJSON restores an equal one.
func (s *State) MarshalJSON() ([]byte, error) {
	return json.Marshal(snapshot{
		Format: snapshotFormat, Paused: s.paused, attemptsSnapshot: s.attempts.Save(), Again: s.scheduler.again,
		ledgerSnapshot: s.Save(), breakersSnapshot: s.breakers.Save(), queueSnapshot: s.queue.Save(), reservationsSnapshot: s.reserve.Save(),
		placerSnapshot: s.placer.Save(), predictorSnapshot: s.predictor.Save(), usersSnapshot: s.users.Save(),
	})
}

// UnmarshalJSON replaces the state by one that MarshalJSON wrote. It rejects an
// inconsistent snapshot and then leaves the state unchanged.
func (s *State) UnmarshalJSON(b []byte) error {
	var snap snapshot
	if err := json.Unmarshal(b, &snap); err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	if snap.Format < 1 || snap.Format > snapshotFormat {
		return fmt.Errorf("snapshot has format %d, this carma reads 1 to %d", snap.Format, snapshotFormat)
	}
	if err := Validate(snap.Options); err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	n, err := snap.state()
	if err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	*s = *n
	return nil
}

// state builds the state that a snapshot describes.
func (snap *snapshot) state() (*State, error) {
	n := New(snap.Options)
	n.paused, n.scheduler.again = snap.Paused, snap.Again
	n.attempts.Restore(snap.attemptsSnapshot)
	if err := n.Ledger.Restore(snap.ledgerSnapshot); err != nil {
		return nil, err
	}
	if err := n.breakers.Restore(snap.breakersSnapshot); err != nil {
		return nil, err
	}
	if err := n.predictor.Restore(snap.predictorSnapshot); err != nil {
		return nil, err
	}
	if err := n.users.Restore(snap.usersSnapshot); err != nil {
		return nil, err
	}
	n.queue.Restore(snap.queueSnapshot)
	if err := n.reserve.Restore(snap.reservationsSnapshot); err != nil {
		return nil, err
	}
	n.placer.Restore(snap.placerSnapshot)
	if err := auditPlaces(n.Ledger, n.queue.WaitingTasks()); err != nil { // what follows reads the grants of tasks
		return nil, err
	}
	n.queue.Rebuild(n.TaskList())
	if n.predictor.FindMPSDomains() {
		n.placer.DropCache()
	}
	n.FillShares()
	n.users.Recount(n.queue.WaitingList())
	return n, n.Audit()
}
