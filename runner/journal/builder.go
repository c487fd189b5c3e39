package journal

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
)

// builder writes the sound part of a journal into a new one.
type builder struct {
	from          *sql.DB
	dir           string
	s             *salvage
	kept          span
	h             *head
	acceptLoss    bool
	version       string // of this program
	tasks, lostID int
}

func (b *builder) build() error {
	if err := os.MkdirAll(b.dir, 0o700); err != nil {
		return err
	}
	db, err := connect(b.dir, 1, writerPragmas)
	if err != nil {
		return err
	}
	defer db.Close()
	if err := migrate(db, b.version); err != nil {
		return err
	}
	var st statements
	if err := st.prepare(db); err != nil {
		return err
	}
	defer st.close()
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := b.copy(tx, &st); err != nil {
		return err
	}
	if err := b.h.store(tx.Stmt(st.head)); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	r := Reader{dir: b.dir, ro: db, q: db}
	if err := r.check(); err != nil {
		return err
	}
	if _, err := db.Exec("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		return err
	}
	return errors.Join(st.close(), db.Close())
}

func (b *builder) copy(tx *sql.Tx, st *statements) (err error) {
	put := func(s *sql.Stmt, args ...any) {
		if err == nil {
			_, err = s.Exec(args...)
		}
	}
	event, decision, meta := tx.Stmt(st.event), tx.Stmt(st.decision), tx.Stmt(st.meta)
	next, before := b.kept.first, b.kept.link
	_ = both(b.from, "events", "seq", "seq, at, kind, body, sum",
		func(rows *sql.Rows) (stored[Event], int64, error) {
			var r stored[Event]
			err := rows.Scan(&r.row.Seq, &r.row.At, &r.row.Kind, &r.row.Body, &r.sum)
			return r, r.row.Seq, err
		},
		func(r stored[Event]) {
			// A number may occur twice. The sound row is the one that continues the chain
			// of the previous event.
			if e := r.row; e.Seq == next && e.Seq <= b.kept.last && link(before, e) == r.sum {
				put(event, e.Seq, e.At, e.Kind, blob(e.Body), r.sum)
				next, before = e.Seq+1, r.sum
			}
		})
	_ = both(b.from, "decisions", "seq", decisionColumns, scanDecision, func(d stored[Decision]) {
		if d.row.Seq >= b.kept.first && d.row.Seq <= b.kept.last && d.row.sum() == d.sum {
			put(decision, d.row.Seq, d.row.N, d.row.Kind, blob(d.row.Body), d.sum)
		}
	})
	for _, seq := range b.s.snapshots {
		if seq >= b.kept.first-1 && seq <= b.kept.last && err == nil {
			var at, sum int64
			var body []byte
			if err = b.from.QueryRow("SELECT at, body, sum FROM snapshots WHERE seq = ?", seq).Scan(&at, &body, &sum); err == nil {
				_, err = tx.Exec("INSERT OR REPLACE INTO snapshots (seq, at, body, sum) VALUES (?, ?, ?, ?)", seq, at, blob(body), sum)
			}
		}
	}
	_ = both(b.from, "tasks", "id", taskColumns,
		func(rows *sql.Rows) (t stored[TaskRow], id int64, err error) {
			t.row, t.sum, err = scanTask(rows)
			return t, t.row.ID, err
		},
		func(t stored[TaskRow]) {
			if t.row.sum() != t.sum {
				b.s.drop("the record of task %d has a wrong checksum", t.row.ID)
				b.lostID++
				return
			}
			b.tasks++
			b.h.task = max(b.h.task, t.row.ID)
			if err == nil {
				err = t.row.store(tx.Stmt(st.task), t.row.Body)
			}
		})
	keys := map[string][]byte{}
	if b.h.instance != "" {
		keys[InstanceKey] = []byte(b.h.instance)
	}
	_ = each(b.from, "SELECT key, value, sum FROM meta",
		func(rows *sql.Rows) (row struct {
			key   string
			value []byte
			sum   int64
		}, _ int64, err error) {
			err = rows.Scan(&row.key, &row.value, &row.sum)
			return row, 0, err
		},
		func(row struct {
			key   string
			value []byte
			sum   int64
		}, _ int64) bool {
			if metaSum(row.key, row.value) == row.sum {
				keys[row.key] = row.value
			} else {
				b.s.drop("the value of key %s has a wrong checksum", row.key)
			}
			return true
		})
	if b.acceptLoss {
		keys[AcceptLossKey] = []byte("1")
	}
	for key, value := range keys {
		put(meta, key, blob(value), metaSum(key, value))
	}
	return err
}

func (b *builder) report(seen head, seenErr error) []string {
	lines := []string{fmt.Sprintf("kept: %s; %d task records", b.h.stand(), b.tasks)}
	if b.kept.first > 1 {
		lines = append(lines, fmt.Sprintf("      events before %d are not kept; a snapshot holds what they led to", b.kept.first))
	}
	most := max(seen.event, b.s.known.event)
	switch {
	case most > b.h.event:
		lines = append(lines, fmt.Sprintf("lost: events %d to %d of %s", b.h.event+1, most, clock(max(seen.at, b.s.known.at))))
	case seenErr != nil:
		lines = append(lines, "lost: not known, as the witness cannot be read")
	default:
		lines = append(lines, "lost: no event")
	}
	for _, d := range b.s.dropped {
		lines = append(lines, "damaged: "+d)
	}
	if b.h.instance == "" {
		lines = append(lines, "the name that containers carry is not known: those that run cannot be found")
	}
	return lines
}
