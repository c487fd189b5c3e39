package journal

import (
	"database/sql"
	"errors"
	"fmt"
	"time"

	"carma/internal/failpoint"
)

// Event is one entry of the history. Here and in the other types, an empty
// body is read back as nil.
type Event struct {
	// Seq is the event's number, from 1 without gaps. Commit assigns it and ignores the
	// given value.
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

// TaskRow is the record of a task: the columns that listings filter by, and the
// body.
type TaskRow struct {
	ID        int64 // from 1
	Name      string
	User      string
	Group     string // for tasks submitted together, or ""
	Phase     string
	Finished  bool
	Submitted int64 // nanoseconds since the Unix epoch
	Ended     int64 // the same, or 0 while the task is not finished
	Body      []byte
	// Make returns the body when it is written, so that the bodies of one commit need not
	// all be in memory at once. It may be called several times. If it is nil, Body is
	// used.
	Make func() ([]byte, error)
}

// Batch is the content of one commit.
type Batch struct {
	Events []Event
	// Decisions may belong to these events or to earlier ones. A stored
	// decision with the same Seq and N is replaced.
	Decisions []Decision
	// Tasks replace the records of the same number. If a number comes twice,
	// the last record counts.
	Tasks []TaskRow
	// Removed are the numbers of records that are deleted for good, even if
	// Tasks has one of them. A number without a record is ignored.
	Removed []int64
	// Meta replaces the values of these keys.
	Meta []MetaRow
	// Decided is the number of the last event whose decisions are all stored with this
	// commit. 0 leaves it as before. See [Reader.Decided].
	Decided int64
}

// MetaRow is a key with its value.
type MetaRow struct {
	Key   string
	Value []byte
}

// Commit stores all of b in one transaction and returns the number of its first event, or
// without events the number of the next event. Once Commit has returned nil, b survives a
// crash of the process and of the machine.
//
// After an error nothing of b is stored, its event numbers will be used again,
// and the journal remains usable. The error wraps [ErrFull] if the disk is
// full. [ErrUncertain] is the exception: the final sync failed, so b may be
// stored or not, and the journal must be closed.
func (j *Journal) Commit(b Batch) (first int64, err error) {
	err = j.write("commit", func(tx *sql.Tx, h *head) error {
		first = h.event + 1
		if err := failpoint.Error("journal-commit-begins"); err != nil {
			return err
		}
		return j.store(tx, h, b)
	})
	if err != nil {
		return 0, err
	}
	return first, nil
}

func (j *Journal) store(tx *sql.Tx, h *head, b Batch) error {
	insert := tx.Stmt(j.stmt.event)
	for _, e := range b.Events {
		h.event++
		e.Seq = h.event
		h.chain, h.at = link(h.chain, e), e.At
		if err := h.note(j.version, "event "+e.Kind, e.Body); err != nil {
			return err
		}
		if _, err := insert.Exec(e.Seq, e.At, e.Kind, blob(e.Body), h.chain); err != nil {
			return fmt.Errorf("event %d: %w", e.Seq, err)
		}
	}
	insert = tx.Stmt(j.stmt.decision)
	for _, d := range b.Decisions {
		if d.Seq < 1 || d.Seq > h.event {
			return fmt.Errorf("decision %d.%d: there is no such event", d.Seq, d.N)
		}
		if err := h.note(j.version, "decision "+d.Kind, d.Body); err != nil {
			return err
		}
		if _, err := insert.Exec(d.Seq, d.N, d.Kind, blob(d.Body), d.sum()); err != nil {
			return fmt.Errorf("decision %d.%d: %w", d.Seq, d.N, err)
		}
	}
	insert = tx.Stmt(j.stmt.task)
	for _, t := range b.Tasks {
		if t.ID < 1 {
			return fmt.Errorf("task %d: numbers start at 1", t.ID)
		}
		body, err := t.body()
		if err == nil {
			err = h.note(j.version, "task", body)
		}
		if err == nil {
			err = t.store(insert, body)
		}
		if err != nil {
			return fmt.Errorf("task %d: %w", t.ID, err)
		}
		h.task = max(h.task, t.ID)
	}
	if err := remove(tx, b.Removed); err != nil {
		return err
	}
	for _, m := range b.Meta {
		if err := h.note(j.version, "key "+m.Key, m.Value); err != nil {
			return err
		}
		if _, err := tx.Stmt(j.stmt.meta).Exec(m.Key, blob(m.Value), metaSum(m.Key, m.Value)); err != nil {
			return fmt.Errorf("key %s: %w", m.Key, err)
		}
	}
	if b.Decided > h.event {
		return fmt.Errorf("decided up to event %d: there is no such event", b.Decided)
	}
	if b.Decided > 0 {
		h.decided = b.Decided
	}
	return nil
}

func (t TaskRow) body() ([]byte, error) {
	if t.Make != nil {
		return t.Make()
	}
	return t.Body, nil
}

func (t TaskRow) store(s *sql.Stmt, body []byte) error {
	t.Body = body
	_, err := s.Exec(t.ID, t.Name, t.User, t.Phase, t.Finished, t.Submitted, t.Ended, blob(t.Body), t.Group, t.sum())
	return err
}

// write runs fn in a transaction, which is rolled back if fn fails. fn changes h to the
// head after it. The witnesses are written last, so that they may be older than the
// database but never newer. There is no context: after an interrupted write, the caller
// would not know what is stored.
func (j *Journal) write(what string, fn func(tx *sql.Tx, h *head) error) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.written != nil {
		defer func(began time.Time) { j.written(time.Since(began)) }(time.Now())
	}
	h := j.at
	h.commits++
	if j.version != "" {
		h.writer = j.version
	}
	tx, err := j.db.Begin()
	if err == nil {
		err = fn(tx, &h)
		if err == nil {
			err = h.store(tx.Stmt(j.stmt.head))
		}
		if err == nil {
			err = failpoint.Error("journal-commit-written")
		}
		if err == nil {
			err = tx.Commit()
		}
		_ = tx.Rollback() // does nothing after a commit
	}
	if err != nil {
		return fmt.Errorf("journal: %s: %w", what, classify(j.dir, err))
	}
	j.at = h
	if err = failpoint.Error("journal-commit-synced"); err == nil {
		err = j.witnesses.write(h)
	}
	if err == nil {
		err = failpoint.Error("journal-witness-synced")
	}
	if err != nil {
		return fmt.Errorf("journal: %s: %w: the witness cannot be written: %w", what, ErrUncertain, err)
	}
	return nil
}

// statements are prepared once; preparing costs more than running them.
type statements struct {
	event, decision, task, meta, head *sql.Stmt
}

func (s *statements) prepare(db *sql.DB) (err error) {
	for _, p := range []struct {
		to  **sql.Stmt
		sql string
	}{
		{&s.event, "INSERT INTO events (seq, at, kind, body, sum) VALUES (?, ?, ?, ?, ?)"},
		{&s.decision, "INSERT OR REPLACE INTO decisions (seq, n, kind, body, sum) VALUES (?, ?, ?, ?, ?)"},
		{&s.task, setTaskSQL},
		{&s.meta, setMetaSQL},
		{&s.head, setHeadSQL},
	} {
		if *p.to, err = db.Prepare(p.sql); err != nil {
			return err
		}
	}
	return nil
}

func (s *statements) close() error {
	var errs []error
	for _, st := range []*sql.Stmt{s.event, s.decision, s.task, s.meta, s.head} {
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
