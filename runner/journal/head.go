package journal

import (
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
)

// head is the position of the journal. It is the only row of a table of that name,
// rewritten in every transaction. The witnesses have a copy of it.
type head struct {
	// id identifies this history. A journal that was truncated, or replaced by a backup,
	// gets another id.
	id      [16]byte
	commits int64 // number of transactions
	event   int64 // number of the last event
	chain   int64 // its sum
	base    int64 // number of the last event that was pruned, or 0
	link    int64 // its sum
	decided int64 // see Reader.Decided
	task    int64 // the highest number a task has ever had
	at      int64 // time of the last event, in nanoseconds since the Unix epoch
	// instance is the value of InstanceKey, by which the containers can be found when the
	// database is lost.
	instance string
	// features is the JSON list of the features that a program must support to read the
	// journal, see [Feature]. writer is the version of the program that wrote last. The
	// witnesses have neither.
	features, writer string
}

// InstanceKey is the key in meta of the data folder's name, which is a label of
// its containers. The witness has it too, if it has at most 32 bytes.
const (
	InstanceKey = "instance"
	maxInstance = 32
)

func (h head) sum() int64 {
	return row(64, h.commits, h.event, h.chain, h.base, h.link, h.decided, h.task, h.at).text(h.instance, h.features, h.writer).sum(h.id[:])
}

// stand describes a head for an operator, in one line.
func (h head) stand() string {
	if h.event == 0 {
		return "no event"
	}
	return fmt.Sprintf("%d events, the last of %s; highest task %d", h.event, clock(h.at), h.task)
}

func clock(at int64) string { return time.Unix(0, at).UTC().Format("2006-01-02 15:04:05 UTC") }

const (
	headColumns = "id, commits, event, chain, base, link, decided, task, at, instance, features, writer, sum"
	setHeadSQL  = "INSERT OR REPLACE INTO head (one, " + headColumns + ") VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)

// renew gives another id to a journal that continues from an earlier point, so that it is
// not compared with rows under the old id.
func (h *head) renew() error {
	_, err := rand.Read(h.id[:])
	return err
}

func (h head) store(s *sql.Stmt) error {
	_, err := s.Exec(h.id[:], h.commits, h.event, h.chain, h.base, h.link, h.decided, h.task, h.at, h.instance, h.features, h.writer, h.sum())
	return err
}

func readHead(q querier) (h head, err error) {
	var id []byte
	var want int64
	err = q.QueryRow("SELECT "+headColumns+" FROM head WHERE one = 1").
		Scan(&id, &h.commits, &h.event, &h.chain, &h.base, &h.link, &h.decided, &h.task, &h.at, &h.instance, &h.features, &h.writer, &want)
	if err := h.sound(id, want, err, head.sum); err != nil {
		return head{}, err
	}
	return h, nil
}

// scanError is the prefix of the errors of database/sql for a value of another type than
// the column.
const scanError = "sql: Scan error"

// sound sets the id of a head that was read, and returns an error if the head is
// missing or damaged.
func (h *head) sound(id []byte, want int64, err error, sum func(head) int64) error {
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return fmt.Errorf("%w: it does not say where it ends", ErrDamaged)
	case err != nil && strings.Contains(err.Error(), scanError):
		return fmt.Errorf("%w: %w", ErrDamaged, err) // a flipped bit can change a value's type
	case err != nil:
		return err
	}
	if copy(h.id[:], id) != len(h.id) || sum(*h) != want {
		return fmt.Errorf("%w: the row that says where it ends has a wrong checksum", ErrDamaged)
	}
	return nil
}

// head returns the position of the journal.
func (r *Reader) head() (head, error) {
	h, err := readHead(r.q)
	if err != nil {
		return head{}, fmt.Errorf("journal: %w", classify(r.dir, err))
	}
	return h, nil
}

// before returns the sum of the event with number after. The sum of the next
// event covers it.
func (r *Reader) before(after int64) (int64, error) {
	if after == 0 {
		return 0, nil
	}
	var s int64
	err := r.q.QueryRow("SELECT sum FROM events WHERE seq = ?", after).Scan(&s)
	if !errors.Is(err, sql.ErrNoRows) {
		return s, err
	}
	h, err := r.head()
	if err == nil && h.base != after {
		err = fmt.Errorf("%w: event %d is missing", ErrDamaged, after)
	}
	return h.link, err
}
