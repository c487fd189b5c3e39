package journal

import (
	"database/sql"
	"errors"
	"fmt"
)

// seal gives all rows of a journal of schema 2 their sums, and makes its head.
// It refuses rows that the sums of schema 2 show to be damaged.
func seal(tx *sql.Tx) error {
	h := head{}
	if err := h.renew(); err != nil {
		return err
	}
	if err := sealEvents(tx, &h); err != nil {
		return err
	}
	err := tx.QueryRow("SELECT coalesce(max(seq), 0) FROM decisions").Scan(&h.decided)
	if err != nil {
		return err
	}
	// Schema 2 kept these values of the head under these keys.
	for key, to := range map[string]*int64{"max task": &h.task, "decided events": &h.decided} {
		err := tx.QueryRow("SELECT CAST(CAST(value AS TEXT) AS INTEGER) FROM meta WHERE key = ?", key).Scan(to)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if _, err := tx.Exec("DELETE FROM meta WHERE key = ?", key); err != nil {
			return err
		}
	}
	if err := sealDecisions(tx); err != nil {
		return err
	}
	if err := sealTasks(tx, &h); err != nil {
		return err
	}
	if err := sealMeta(tx, &h); err != nil {
		return err
	}
	_, err = tx.Exec("INSERT INTO head (one, "+head3Columns+") VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		h.id[:], h.commits, h.event, h.chain, h.base, h.link, h.decided, h.task, h.at, h.instance, h.sum3())
	return err
}

// head3Columns are the columns of a head of schema 3.
const head3Columns = "id, commits, event, chain, base, link, decided, task, at, instance, sum"

// sum3 returns the checksum of a head of schema 3.
func (h head) sum3() int64 {
	return row(64, h.commits, h.event, h.chain, h.base, h.link, h.decided, h.task, h.at).text(h.instance).sum(h.id[:])
}

// listFeatures begins the list of features of a journal of schema 3.
func listFeatures(tx *sql.Tx, version string) error {
	var h head
	var id []byte
	var want int64
	err := tx.QueryRow("SELECT "+head3Columns+" FROM head WHERE one = 1").
		Scan(&id, &h.commits, &h.event, &h.chain, &h.base, &h.link, &h.decided, &h.task, &h.at, &h.instance, &want)
	if err := h.sound(id, want, err, head.sum3); err != nil {
		return err
	}
	h.features = "[]"
	if err := h.add(need{Name: schemaFeature(featureSchema), Since: version, Event: h.event, Task: h.task}); err != nil {
		return err
	}
	s, err := tx.Prepare(setHeadSQL)
	if err != nil {
		return err
	}
	defer s.Close()
	return h.store(s)
}

// sealEvents reads the events page by page, because no statement may read a table while
// another one writes to it.
func sealEvents(tx *sql.Tx, h *head) error {
	err := tx.QueryRow("SELECT coalesce((SELECT min(seq) - 1 FROM events), (SELECT max(seq) FROM snapshots), 0)").Scan(&h.base)
	if err != nil {
		return err
	}
	h.event = h.base
	return inPages(tx, "SELECT seq, at, kind, body, sum FROM events WHERE seq > ? ORDER BY seq LIMIT ?", h.base,
		func(rows *sql.Rows) (e stored[Event], err error) {
			err = rows.Scan(&e.row.Seq, &e.row.At, &e.row.Kind, &e.row.Body, &e.sum)
			return e, err
		},
		func(e stored[Event]) (int64, error) {
			if e.row.Seq != h.event+1 {
				return 0, fmt.Errorf("%w: event %d is missing, the next is %d", ErrDamaged, h.event+1, e.row.Seq)
			}
			if sum(e.row.Seq, e.row.At, e.row.Kind, e.row.Body) != e.sum {
				return 0, fmt.Errorf("%w: event %d (%s) has a wrong checksum", ErrDamaged, e.row.Seq, e.row.Kind)
			}
			h.event, h.at, h.chain = e.row.Seq, e.row.At, link(h.chain, e.row)
			_, err := tx.Exec("UPDATE events SET sum = ? WHERE seq = ?", h.chain, e.row.Seq)
			return e.row.Seq, err
		})
}

func sealDecisions(tx *sql.Tx) error {
	// The key is two numbers; rows of one event fit into one page or are few.
	rows, err := tx.Query("SELECT seq, n, kind, body FROM decisions ORDER BY seq, n")
	if err != nil {
		return err
	}
	defer rows.Close()
	var sums [][3]int64
	for rows.Next() {
		var d Decision
		if err := rows.Scan(&d.Seq, &d.N, &d.Kind, &d.Body); err != nil {
			return err
		}
		sums = append(sums, [3]int64{d.Seq, int64(d.N), d.sum()})
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for _, s := range sums {
		if _, err := tx.Exec("UPDATE decisions SET sum = ? WHERE seq = ? AND n = ?", s[2], s[0], s[1]); err != nil {
			return err
		}
	}
	return nil
}

func sealTasks(tx *sql.Tx, h *head) error {
	return inPages(tx, "SELECT "+taskColumns+" FROM tasks WHERE id > ? ORDER BY id LIMIT ?", 0,
		func(rows *sql.Rows) (t stored[TaskRow], err error) {
			t.row, t.sum, err = scanTask(rows)
			return t, err
		},
		func(t stored[TaskRow]) (int64, error) {
			h.task = max(h.task, t.row.ID)
			_, err := tx.Exec("UPDATE tasks SET sum = ? WHERE id = ?", t.row.sum(), t.row.ID)
			return t.row.ID, err
		})
}

func sealMeta(tx *sql.Tx, h *head) error {
	rows, err := tx.Query("SELECT key, value FROM meta")
	if err != nil {
		return err
	}
	defer rows.Close()
	sums := map[string]int64{}
	for rows.Next() {
		var key string
		var value []byte
		if err := rows.Scan(&key, &value); err != nil {
			return err
		}
		sums[key] = metaSum(key, value)
		if key == InstanceKey && len(value) <= maxInstance {
			h.instance = string(value)
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for key, s := range sums {
		if _, err := tx.Exec("UPDATE meta SET sum = ? WHERE key = ?", s, key); err != nil {
			return err
		}
	}
	return nil
}

// stored is a row with the sum that was stored for it.
type stored[T any] struct {
	row T
	sum int64
}

// inPages reads rows after a key, page by page, and passes each to do, which returns the
// key of the row.
func inPages[T any](q querier, query string, after int64, scan func(*sql.Rows) (T, error), do func(T) (int64, error)) error {
	for {
		page, err := onePage(q, query, after, scan)
		for _, row := range page {
			key, err := do(row)
			if err != nil {
				return err
			}
			after = key
		}
		if err != nil || len(page) < pageSize {
			return err
		}
	}
}

// onePage returns the rows up to the first that cannot be read.
func onePage[T any](q querier, query string, after int64, scan func(*sql.Rows) (T, error)) (page []T, err error) {
	rows, err := q.Query(query, after, pageSize)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		row, err := scan(rows)
		if err != nil {
			return page, err
		}
		page = append(page, row)
	}
	return page, rows.Err()
}
