package journal

import (
	"database/sql"
	"errors"
	"fmt"
)

// Snapshot is the state after event Seq.
type Snapshot struct {
	Seq  int64 // 0 for the empty state, before the first event
	At   int64 // nanoseconds since the Unix epoch
	Body []byte
	// Damaged describes the errors in newer snapshots that Load skipped, for the log.
	Damaged error
}

// Snapshot stores the state after event seq, which must be stored already. The
// newest two are kept.
func (j *Journal) Snapshot(seq, at int64, body []byte) error {
	return j.write("snapshot", func(tx *sql.Tx, h *head) error {
		if seq < 1 || seq > h.event {
			return fmt.Errorf("there is no event %d", seq)
		}
		if err := h.note(j.version, "snapshot", body); err != nil {
			return err
		}
		_, err := tx.Exec("INSERT OR REPLACE INTO snapshots (seq, at, body, sum) VALUES (?, ?, ?, ?)",
			seq, at, blob(body), sum(seq, at, "", body))
		if err != nil {
			return err
		}
		_, err = tx.Exec("DELETE FROM snapshots WHERE seq NOT IN (SELECT seq FROM snapshots ORDER BY seq DESC LIMIT 2)")
		return err
	})
}

// Load returns the newest readable snapshot. Events(Seq) yields the events after it.
// Without any snapshot Load returns the empty one. It is an error if no snapshot can be
// read and the first events are pruned.
func (r *Reader) Load() (Snapshot, error) {
	seqs, err := r.snapshotSeqs()
	if err != nil {
		return Snapshot{}, err
	}
	var damaged []error
	for _, seq := range seqs {
		s, err := r.snapshot(seq)
		if err == nil {
			s.Damaged = errors.Join(damaged...)
			return s, nil
		}
		damaged = append(damaged, err)
	}
	switch first, _, err := r.Bounds(); {
	case err != nil:
		return Snapshot{}, err
	case first > 1:
		return Snapshot{}, fmt.Errorf("journal: no snapshot can be read and the events before %d are gone: %w",
			first, errors.Join(append(damaged, ErrDamaged)...))
	}
	return Snapshot{Damaged: errors.Join(damaged...)}, nil
}

// snapshotSeqs lists the snapshots, newest first, without reading them.
func (r *Reader) snapshotSeqs() (seqs []int64, err error) {
	rows, err := r.q.Query("SELECT seq FROM snapshots ORDER BY seq DESC")
	if err != nil {
		return nil, fmt.Errorf("journal: snapshots: %w", classify(r.dir, err))
	}
	defer rows.Close()
	for rows.Next() {
		var seq int64
		if err := rows.Scan(&seq); err != nil {
			return nil, fmt.Errorf("journal: snapshots: %w", classify(r.dir, err))
		}
		seqs = append(seqs, seq)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("journal: snapshots: %w", classify(r.dir, err))
	}
	return seqs, nil
}

func (r *Reader) snapshot(seq int64) (Snapshot, error) {
	s := Snapshot{Seq: seq}
	var want int64
	err := r.q.QueryRow("SELECT at, body, sum FROM snapshots WHERE seq = ?", seq).Scan(&s.At, &s.Body, &want)
	switch {
	case err != nil:
		return Snapshot{}, fmt.Errorf("journal: snapshot %d: %w", seq, classify(r.dir, err))
	case sum(seq, s.At, "", s.Body) != want:
		return Snapshot{}, fmt.Errorf("journal: snapshot %d: %w: wrong checksum", seq, ErrDamaged)
	}
	return s, nil
}
