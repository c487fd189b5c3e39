package journal

import (
	"context"
	"database/sql"
	"fmt"
	"sort"
)

// aboutStep is the number of events [Reader.About] reads before it checks whether the
// caller has cancelled.
const aboutStep = 4096

// About returns the events and decisions that are about a task, of events numbered from
// first to last, each in order. It serves views of a task. It finds rows by their text
// and reads no others, so it does not check the chain. A row about another task may be
// among them. Samples, paces and wakes never are.
func (r *Reader) About(ctx context.Context, task, first, last int64) (events []Event, decisions []Decision, err error) {
	for from := first; from <= last && err == nil; from += aboutStep {
		to := min(last, from+aboutStep-1)
		if err = ctx.Err(); err == nil {
			err = r.aboutEvents(task, from, to, &events)
		}
		if err == nil {
			err = r.aboutDecisions(task, from, to, &decisions)
		}
	}
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("journal: task %d: %w", task, classify(r.dir, err))
	}
	return events, decisions, err
}

// named returns the JSON texts by which a body names a task. In JSON the number ends with a
// comma or a brace, which the reader of the rows checks.
func named(task int64) (field, id []byte) {
	return fmt.Appendf(nil, `"task":%d`, task), fmt.Appendf(nil, `"id":%d`, task)
}

func (r *Reader) aboutEvents(task, from, to int64, found *[]Event) error {
	field, id := named(task)
	// The condition on the kind comes first, so that the long bodies of samples are not
	// read.
	rows, err := r.q.Query(`SELECT seq, at, kind, body FROM events WHERE seq BETWEEN ? AND ?
		AND kind NOT IN ('sampled', 'paced', 'woke') AND (instr(body, ?) > 0 OR kind = 'task-submitted' AND instr(body, ?) > 0) ORDER BY seq`, from, to, field, id)
	return scanRows(rows, err, func() error {
		var e Event
		if err := rows.Scan(&e.Seq, &e.At, &e.Kind, &e.Body); err != nil {
			return err
		}
		*found = append(*found, e)
		return nil
	})
}

func (r *Reader) aboutDecisions(task, from, to int64, found *[]Decision) error {
	field, id := named(task)
	rows, err := r.q.Query(`SELECT seq, n, kind, body, sum FROM decisions WHERE seq BETWEEN ? AND ? AND kind <> 'wake-at'
		AND (instr(body, ?) > 0 OR kind = 'finish' AND instr(body, ?) > 0) ORDER BY seq, n`, from, to, field, id)
	return scanRows(rows, err, func() error {
		var d Decision
		var want int64
		if err := rows.Scan(&d.Seq, &d.N, &d.Kind, &d.Body, &want); err != nil {
			return err
		}
		if d.sum() != want {
			return fmt.Errorf("%w: decision %d.%d (%s) has a wrong checksum", ErrDamaged, d.Seq, d.N, d.Kind)
		}
		*found = append(*found, d)
		return nil
	})
}

func scanRows(rows *sql.Rows, err error, scan func() error) error {
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Since returns the number of the first kept event at or after an instant, or the last
// event's number plus 1 if there is none.
func (r *Reader) Since(at int64) (seq int64, err error) {
	first, last, err := r.Bounds()
	if err != nil {
		return 0, err
	}
	n := sort.Search(int(last-first+1), func(i int) bool {
		var when int64
		if err == nil {
			when, err = r.At(first + int64(i))
		}
		return err != nil || when >= at
	})
	return first + int64(n), err
}

// At returns the instant of an event that is kept.
func (r *Reader) At(seq int64) (at int64, err error) {
	if err = r.q.QueryRow("SELECT at FROM events WHERE seq = ?", seq).Scan(&at); err != nil {
		return 0, fmt.Errorf("journal: event %d: %w", seq, classify(r.dir, err))
	}
	return at, nil
}
