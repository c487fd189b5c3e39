package journal

import (
	"database/sql"
	"fmt"
	"iter"
)

// pageSize is the number of rows that an iteration has in memory. Iterations read page by
// page, because the write-ahead log grows as long as a read lasts.
const pageSize = 256

// Bounds returns the numbers of the oldest kept event and of the last event, kept or not.
// They are 1 and 0 for an empty journal.
func (r *Reader) Bounds() (first, last int64, err error) {
	h, err := r.head()
	if err != nil {
		return 0, 0, err
	}
	err = r.q.QueryRow("SELECT coalesce(min(seq), ? + 1) FROM events", h.event).Scan(&first)
	if err != nil {
		return 0, 0, fmt.Errorf("journal: bounds: %w", classify(r.dir, err))
	}
	return first, h.event, nil
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
		chain := int64(0)
		if err == nil {
			if chain, err = r.before(after); err != nil {
				err = fmt.Errorf("journal: event %d: %w", after, classify(r.dir, err))
			}
		}
		for err == nil {
			var page []Event
			if page, chain, err = r.eventPage(after, chain); len(page) == 0 {
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

// eventPage returns the events up to the first bad one, and the error in the bad event.
// chain is the sum of the event before the page. The returned sum is the sum of the
// page's last event.
func (r *Reader) eventPage(after, chain int64) ([]Event, int64, error) {
	rows, err := r.q.Query("SELECT seq, at, kind, body, sum FROM events WHERE seq > ? ORDER BY seq LIMIT ?", after, pageSize)
	var page []Event
	if err == nil {
		defer rows.Close()
		for rows.Next() {
			var e Event
			var want int64
			if err := rows.Scan(&e.Seq, &e.At, &e.Kind, &e.Body, &want); err != nil {
				return page, chain, fmt.Errorf("journal: event %d: %w", after+1, classify(r.dir, err))
			}
			switch {
			case e.Seq != after+1:
				return page, chain, fmt.Errorf("journal: %w: event %d is missing, the next is %d", ErrDamaged, after+1, e.Seq)
			case link(chain, e) != want:
				return page, chain, fmt.Errorf("journal: %w: event %d (%s) has a wrong checksum", ErrDamaged, e.Seq, e.Kind)
			}
			page, after, chain = append(page, e), e.Seq, want
		}
		err = rows.Err()
	}
	if err != nil {
		return page, chain, fmt.Errorf("journal: event %d: %w", after+1, classify(r.dir, err))
	}
	return page, chain, nil
}

// Decisions yields the decisions of the events after number after, in order. The
// decisions of the last events may not have been stored yet.
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
	rows, err := r.q.Query(`SELECT seq, n, kind, body, sum FROM decisions
		WHERE (seq, n) > (?, ?) ORDER BY seq, n LIMIT ?`, seq, n, pageSize)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var d Decision
		var want int64
		if err := rows.Scan(&d.Seq, &d.N, &d.Kind, &d.Body, &want); err != nil {
			return page, err
		}
		if d.sum() != want {
			return page, fmt.Errorf("%w: decision %d.%d (%s) has a wrong checksum", ErrDamaged, d.Seq, d.N, d.Kind)
		}
		page = append(page, d)
	}
	return page, rows.Err()
}

// Decided returns the number of the last event whose decisions are all stored, from the
// last commit with a Batch.Decided. In a journal of an older carma, which did not store
// this number, it is the last event with a stored decision, or 0.
func (r *Reader) Decided() (seq int64, err error) {
	h, err := r.head()
	return h.decided, err
}

// Prune removes old events with their decisions, and returns how many. It removes at most
// PruneLimit events, so that it does not delay the writer for long. Call it again if it
// returned PruneLimit. An event is removed if it is not after the older of two readable
// snapshots, so that no replay needs it; if it is not one of the newest keep; and if it
// is from before olderThan (nanoseconds since the Unix epoch).
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
	if cut < first {
		return 0, nil
	}
	err = j.write("prune", func(tx *sql.Tx, h *head) error {
		// The kept events must have no gaps, so stop before the first young one.
		err := tx.QueryRow("SELECT coalesce(min(seq) - 1, ?1) FROM events WHERE seq <= ?1 AND at >= ?2", cut, olderThan).Scan(&cut)
		if err != nil || cut < first {
			return err
		}
		if err := tx.QueryRow("SELECT seq, sum FROM events WHERE seq = ?", cut).Scan(&h.base, &h.link); err != nil {
			return err
		}
		if _, err := tx.Exec("DELETE FROM decisions WHERE seq <= ?", cut); err != nil {
			return err
		}
		_, err = tx.Exec("DELETE FROM events WHERE seq <= ?", cut)
		return err
	})
	if err != nil {
		return 0, err
	}
	return int(max(0, cut-first+1)), nil
}

// PruneLimit is the largest number of events that one call of Prune removes.
const PruneLimit = 4096
