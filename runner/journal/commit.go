package journal

import (
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"carma/failpoint"
)

// Event is one entry of the history. Here and in the other types, an empty
// body is read back as nil.
type Event struct {
	// Seq is its number, from 1 without gaps. Commit assigns it and ignores
	// what is set.
	Seq  int64
	At   int64 // nanoseconds since the Unix epoch
	Kind string
	Body []byte
}

// Decision is the N-th decision that event Seq led to.
type Decision struct {
	Seq  int64
	N    int
	Kind string
	Body []byte
}

// TaskRow is the record of a task: what listings filter by, and the body.
type TaskRow struct {
	ID        int64 // from 1
	Name      string
	User      string
	Group     string // of tasks that were submitted together; empty: none
	Phase     string
	Finished  bool
	Submitted int64 // nanoseconds since the Unix epoch
	Ended     int64 // the same; 0 while it is not finished
	Body      []byte
}

// Batch is what one commit stores.
type Batch struct {
	Events []Event
	// Decisions may belong to these events or to earlier ones. One that is
	// already there is replaced.
	Decisions []Decision
	// Tasks replace the records of the same number; of several with one
	// number the last counts.
	Tasks []TaskRow
	// Removed are the numbers of records that are deleted for good, also where
	// Tasks has one of them. A number without a record is ignored.
	Removed []int64
	// Decided is the number of the last event whose decisions are all stored
	// with this commit; 0: as before. See [Reader.Decided].
	Decided int64
}

// Commit stores all of b in one transaction and returns the number of its
// first event (without events: of the next one there will be). When it
// returns nil, b survives a crash of the process and of the machine.
//
// After an error nothing of b is there, its event numbers will be used again,
// and the journal remains usable. The error wraps [ErrFull] if the disk is
// full. There is one exception: if the disk itself failed in the final sync,
// and the machine stops before the next commit, b may be found again.
func (j *Journal) Commit(b Batch) (first int64, err error) {
	err = j.write("commit", func(tx *sql.Tx) error {
		first = j.next
		if err := failpoint.Error("journal-commit-begins"); err != nil {
			return err
		}
		return j.store(tx, first, b)
	})
	if err != nil {
		return 0, err
	}
	return first, nil
}

func (j *Journal) store(tx *sql.Tx, first int64, b Batch) error {
	last := first + int64(len(b.Events)) - 1
	insert := tx.Stmt(j.stmt.event)
	for i, e := range b.Events {
		seq := first + int64(i)
		if _, err := insert.Exec(seq, e.At, e.Kind, blob(e.Body), sum(seq, e.At, e.Kind, e.Body)); err != nil {
			return fmt.Errorf("event %d: %w", seq, err)
		}
	}
	insert = tx.Stmt(j.stmt.decision)
	for _, d := range b.Decisions {
		if d.Seq < 1 || d.Seq > last {
			return fmt.Errorf("decision %d.%d: there is no such event", d.Seq, d.N)
		}
		if _, err := insert.Exec(d.Seq, d.N, d.Kind, blob(d.Body)); err != nil {
			return fmt.Errorf("decision %d.%d: %w", d.Seq, d.N, err)
		}
	}
	insert = tx.Stmt(j.stmt.task)
	for _, t := range b.Tasks {
		if t.ID < 1 {
			return fmt.Errorf("task %d: numbers start at 1", t.ID)
		}
		if _, err := insert.Exec(t.ID, t.Name, t.User, t.Phase, t.Finished, t.Submitted, t.Ended, blob(t.Body), t.Group); err != nil {
			return fmt.Errorf("task %d: %w", t.ID, err)
		}
	}
	if err := remove(tx, b.Removed); err != nil {
		return err
	}
	if b.Decided > last {
		return fmt.Errorf("decided up to event %d: there is no such event", b.Decided)
	}
	if b.Decided > 0 {
		if _, err := tx.Stmt(j.stmt.meta).Exec(decidedKey, fmt.Append(nil, b.Decided)); err != nil {
			return fmt.Errorf("decided up to event %d: %w", b.Decided, err)
		}
	}
	return j.committed(tx, last+1)
}

// committed commits tx and only then moves on to the next event number.
func (j *Journal) committed(tx *sql.Tx, next int64) error {
	if err := failpoint.Error("journal-commit-written"); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	j.next = next
	return failpoint.Error("journal-commit-synced")
}

// write runs fn in a transaction. It is rolled back unless fn commits it. No
// context: a write that is half given up would leave the caller guessing.
func (j *Journal) write(what string, fn func(*sql.Tx) error) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	tx, err := j.db.Begin()
	if err == nil {
		err = fn(tx)
		_ = tx.Rollback() // after a commit it does nothing
	}
	if err != nil {
		return fmt.Errorf("journal: %s: %w", what, classify(j.dir, err))
	}
	return nil
}

// statements are prepared once; preparing costs more than running them.
type statements struct {
	event, decision, task, meta *sql.Stmt
}

func (s *statements) prepare(db *sql.DB) (err error) {
	for _, p := range []struct {
		to  **sql.Stmt
		sql string
	}{
		{&s.event, "INSERT INTO events (seq, at, kind, body, sum) VALUES (?, ?, ?, ?, ?)"},
		{&s.decision, "INSERT OR REPLACE INTO decisions (seq, n, kind, body) VALUES (?, ?, ?, ?)"},
		{&s.task, "INSERT OR REPLACE INTO tasks (id, name, user, phase, finished, submitted, ended, body, grp) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"},
		{&s.meta, setMetaSQL},
	} {
		if *p.to, err = db.Prepare(p.sql); err != nil {
			return err
		}
	}
	return nil
}

func (s *statements) close() error {
	var errs []error
	for _, st := range []*sql.Stmt{s.event, s.decision, s.task, s.meta} {
		if st != nil {
			errs = append(errs, st.Close())
		}
	}
	return errors.Join(errs...)
}

// blob keeps an empty body from being stored as NULL.
func blob(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sum covers all columns, so that a row in the wrong place is found as well.
func sum(seq, at int64, kind string, body []byte) int64 {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], uint64(seq))
	binary.BigEndian.PutUint64(b[8:], uint64(at))
	c := crc32.Update(0, castagnoli, b[:])
	c = crc32.Update(c, castagnoli, append([]byte(kind), 0))
	return int64(crc32.Update(c, castagnoli, body))
}
