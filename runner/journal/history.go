package journal

import (
	"database/sql"
	"fmt"
	"iter"
)

// pageSize is how many rows an iteration holds in memory. It reads page by
// page, because a long read would keep the write-ahead log growing.
const pageSize = 256

// Bounds returns the numbers of the oldest event kept and of the last event,
// kept or not: 1, 0 for an empty journal.
func (r *Reader) Bounds() (first, last int64, err error) {
	err = r.q.QueryRow(`SELECT
		coalesce((SELECT min(seq) FROM events), (SELECT max(seq) + 1 FROM snapshots), 1),
		max(coalesce((SELECT max(seq) FROM events), 0), coalesce((SELECT max(seq) FROM snapshots), 0))`).
		Scan(&first, &last)
	if err != nil {
		return 0, 0, fmt.Errorf("journal: bounds: %w", classify(r.dir, err))
	}
	return first, last, nil
}

// Events yields the events after number after, in order. A missing or altered
// event ends the iteration with an error that wraps [ErrDamaged] and names
// the place. While a daemon prunes, use [Reader.View].
func (r *Reader) Events(after int64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		_, last, err := r.Bounds()
		if err == nil && after > last {
			err = fmt.Errorf("journal: %w: it ends at event %d, before %d", ErrDamaged, last, after)
		}
		for err == nil {
			var page []Event
			if page, err = r.eventPage(after); len(page) == 0 {
				break
			}
			for _, e := range page {
				if !yield(e, nil) {
					return
				}
				after = e.Seq
			}
		}
		if err == nil && after < last {
			err = fmt.Errorf("journal: %w: event %d is missing", ErrDamaged, after+1)
		}
		if err != nil {
			yield(Event{}, err)
		}
	}
}

// eventPage returns the events up to the first bad one, and what is wrong
// with that.
func (r *Reader) eventPage(after int64) ([]Event, error) {
	rows, err := r.q.Query("SELECT seq, at, kind, body, sum FROM events WHERE seq > ? ORDER BY seq LIMIT ?", after, pageSize)
	var page []Event
	if err == nil {
		defer rows.Close()
		for rows.Next() {
			var e Event
			var want int64
			if err := rows.Scan(&e.Seq, &e.At, &e.Kind, &e.Body, &want); err != nil {
				return page, fmt.Errorf("journal: event %d: %w", after+1, classify(r.dir, err))
			}
			switch {
			case e.Seq != after+1:
				return page, fmt.Errorf("journal: %w: event %d is missing, the next is %d", ErrDamaged, after+1, e.Seq)
			case sum(e.Seq, e.At, e.Kind, e.Body) != want:
				return page, fmt.Errorf("journal: %w: event %d (%s) has a wrong checksum", ErrDamaged, e.Seq, e.Kind)
			}
			page, after = append(page, e), e.Seq
		}
		err = rows.Err()
	}
	if err != nil {
		return page, fmt.Errorf("journal: event %d: %w", after+1, classify(r.dir, err))
	}
	return page, nil
}

// Decisions yields the decisions of the events after number after, in order.
// Those of the last events may not have been stored yet.
func (r *Reader) Decisions(after int64) iter.Seq2[Decision, error] {
	return func(yield func(Decision, error) bool) {
		seq, n := after+1, -1
		for {
			page, err := r.decisionPage(seq, n)
			for _, d := range page {
				if !yield(d, nil) {
					return
				}
				seq, n = d.Seq, d.N
			}
			if err != nil {
				yield(Decision{}, fmt.Errorf("journal: decisions of event %d: %w", seq, classify(r.dir, err)))
			}
			if err != nil || len(page) < pageSize {
				return
			}
		}
	}
}

func (r *Reader) decisionPage(seq int64, n int) (page []Decision, err error) {
	rows, err := r.q.Query(`SELECT seq, n, kind, body FROM decisions
		WHERE (seq, n) > (?, ?) ORDER BY seq, n LIMIT ?`, seq, n, pageSize)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var d Decision
		if err := rows.Scan(&d.Seq, &d.N, &d.Kind, &d.Body); err != nil {
			return page, err
		}
		page = append(page, d)
	}
	return page, rows.Err()
}

// decidedKey is the key in meta of what Decided returns.
const decidedKey = "decided events"

// Decided returns the number of the last event whose decisions are all stored,
// as the last commit with a Batch.Decided said. Where no commit has said it,
// which is so in a journal of a carma that did not, it is the last event that
// has a stored decision; 0: none.
func (r *Reader) Decided() (seq int64, err error) {
	err = r.q.QueryRow(`SELECT coalesce(
		(SELECT CAST(CAST(value AS TEXT) AS INTEGER) FROM meta WHERE key = ?),
		(SELECT max(seq) FROM decisions), 0)`, decidedKey).Scan(&seq)
	if err != nil {
		return 0, fmt.Errorf("journal: decided: %w", classify(r.dir, err))
	}
	return seq, nil
}

// Check reads the whole database and reports damage to its structure and to
// any event or snapshot. It takes seconds per gigabyte and holds up nobody.
func (r *Reader) Check() error { return r.View((*Reader).check) }

func (r *Reader) check() error {
	var found string
	if err := r.q.QueryRow("PRAGMA quick_check(1)").Scan(&found); err != nil {
		return fmt.Errorf("journal: check: %w", classify(r.dir, err))
	}
	if found != "ok" {
		return fmt.Errorf("journal: %w: %s", ErrDamaged, found)
	}
	snapshots, err := r.snapshotSeqs()
	if err != nil {
		return err
	}
	for _, seq := range snapshots {
		if _, err := r.snapshot(seq); err != nil {
			return err
		}
	}
	first, _, err := r.Bounds()
	if err != nil {
		return err
	}
	for _, err := range r.Events(first - 1) {
		if err != nil {
			return err
		}
	}
	return nil
}

// Prune removes old events with their decisions, at most PruneLimit of them
// so that it does not hold up the writer for long, and returns how many: call
// it again if it was PruneLimit. An event goes if all of this holds: it is
// not after the older of two readable snapshots, so that no replay needs it;
// it is not one of the newest keep; it is from before olderThan (nanoseconds
// since the Unix epoch).
func (j *Journal) Prune(keep int, olderThan int64) (removed int, err error) {
	seqs, err := j.snapshotSeqs()
	if err != nil || len(seqs) < 2 {
		return 0, err
	}
	for _, seq := range seqs {
		if _, err := j.snapshot(seq); err != nil {
			return 0, nil // Load may need to go further back than usual
		}
	}
	first, last, err := j.Bounds()
	if err != nil {
		return 0, err
	}
	cut := min(seqs[1], last-int64(keep), first+PruneLimit-1)
	err = j.write("prune", func(tx *sql.Tx) error {
		// Events must stay without gaps: stop before the first young one.
		err := tx.QueryRow("SELECT coalesce(min(seq) - 1, ?1) FROM events WHERE seq <= ?1 AND at >= ?2", cut, olderThan).Scan(&cut)
		if err != nil || cut < first {
			return err
		}
		if _, err := tx.Exec("DELETE FROM decisions WHERE seq <= ?", cut); err != nil {
			return err
		}
		if _, err := tx.Exec("DELETE FROM events WHERE seq <= ?", cut); err != nil {
			return err
		}
		return tx.Commit()
	})
	if err != nil {
		return 0, err
	}
	return int(max(0, cut-first+1)), nil
}

// PruneLimit is the most events that one call of Prune removes.
const PruneLimit = 4096
