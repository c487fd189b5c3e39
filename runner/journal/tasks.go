package journal

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
)

// Filter selects task records; the zero value selects all.
type Filter struct {
	Unfinished  bool   // only tasks that have not ended
	EndedBefore int64  // only finished tasks that ended before this instant, or any if 0
	User        string // only this user's, or everyone's if empty
	Group       string // only tasks of this group, or any if empty
	Before      int64  // only numbers below this one, for the next page, or any if 0
	From        int64  // only numbers from this one on, the lowest first, or any if 0
	Limit       int    // largest number of records, or 0 for no limit
	Bytes       int64  // stop after the record with which the bodies reach this many bytes, or 0 for no limit
}

const (
	taskColumns = "id, name, user, phase, finished, submitted, ended, body, grp, sum"
	setTaskSQL  = "INSERT OR REPLACE INTO tasks (" + taskColumns + ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)

// Task returns a task's record, or [ErrNotFound].
func (r *Reader) Task(id int64) (TaskRow, error) {
	t, err := r.oneTask("WHERE id = ?", id)
	if err != nil {
		return TaskRow{}, fmt.Errorf("task %d: %w", id, err)
	}
	return t, nil
}

// TaskByName returns the record of the newest task of that name, or
// [ErrNotFound]. No task has the empty name.
func (r *Reader) TaskByName(name string) (TaskRow, error) {
	t, err := r.oneTask("WHERE name = ? AND name <> '' ORDER BY id DESC LIMIT 1", name)
	if err != nil {
		return TaskRow{}, fmt.Errorf("task %q: %w", name, err)
	}
	return t, nil
}

func (r *Reader) oneTask(where string, arg any) (TaskRow, error) {
	rows, err := r.queryTasks(where, arg)
	switch {
	case err != nil:
		return TaskRow{}, err
	case len(rows) == 0:
		return TaskRow{}, ErrNotFound
	}
	return rows[0], nil
}

// Tasks returns the records that f selects, highest number first unless From is
// set.
func (r *Reader) Tasks(f Filter) ([]TaskRow, error) {
	where, args := f.sql()
	rows, err := r.someTasks(f.Bytes, where, args...)
	if err != nil {
		return nil, fmt.Errorf("tasks: %w", err)
	}
	return rows, nil
}

func (f Filter) sql() (string, []any) {
	conds, args, order := []string{"1"}, []any(nil), "id"
	add := func(cond string, arg ...any) {
		conds, args = append(conds, cond), append(args, arg...)
	}
	if f.Unfinished {
		add("finished = 0")
	}
	if f.EndedBefore != 0 {
		add("finished = 1 AND ended < ?", f.EndedBefore)
		order = "+id" // otherwise SQLite would read all records in order of id
	}
	if f.User != "" {
		add("user = ?", f.User)
	}
	if f.Group != "" {
		add("grp = ? AND grp <> ''", f.Group) // the second condition lets SQLite use the index
	}
	if f.Before != 0 {
		add("id < ?", f.Before)
	}
	order += " DESC"
	if f.From != 0 {
		add("id >= ?", f.From)
		order = "id"
	}
	limit := -1
	if f.Limit > 0 {
		limit = f.Limit
	}
	return "WHERE " + strings.Join(conds, " AND ") + " ORDER BY " + order + " LIMIT ?", append(args, limit)
}

func (r *Reader) queryTasks(where string, args ...any) (tasks []TaskRow, err error) {
	return r.someTasks(0, where, args...)
}

// someTasks returns rows until their bodies reach bytes, or all rows if bytes is 0.
func (r *Reader) someTasks(bytes int64, where string, args ...any) (tasks []TaskRow, err error) {
	have := int64(0)
	rows, err := r.q.Query("SELECT "+taskColumns+" FROM tasks "+where, args...)
	if err != nil {
		return nil, classify(r.dir, err)
	}
	defer rows.Close()
	for rows.Next() {
		t, want, err := scanTask(rows)
		if err != nil {
			return nil, classify(r.dir, err)
		}
		if t.sum() != want {
			return nil, fmt.Errorf("%w: the record of task %d has a wrong checksum; run carma journal check", ErrDamaged, t.ID)
		}
		tasks = append(tasks, t)
		if have += int64(len(t.Body)); bytes > 0 && have >= bytes {
			break
		}
	}
	if err := rows.Err(); err != nil {
		return nil, classify(r.dir, err)
	}
	return tasks, nil
}

func scanTask(rows *sql.Rows) (t TaskRow, sum int64, err error) {
	err = rows.Scan(&t.ID, &t.Name, &t.User, &t.Phase, &t.Finished, &t.Submitted, &t.Ended, &t.Body, &t.Group, &sum)
	return t, sum, err
}

// MaxTaskID returns the highest number that a task record has ever had, even if it has
// been deleted since, or 0.
func (r *Reader) MaxTaskID() (int64, error) {
	h, err := r.head()
	return h.task, err
}

// DeleteTasks removes the records of tasks for good. A number without a
// record is ignored.
func (j *Journal) DeleteTasks(ids ...int64) error {
	return j.write("delete tasks", func(tx *sql.Tx, _ *head) error { return remove(tx, ids) })
}

func remove(tx *sql.Tx, ids []int64) error {
	for _, id := range ids {
		if _, err := tx.Exec("DELETE FROM tasks WHERE id = ?", id); err != nil {
			return fmt.Errorf("task %d: %w", id, err)
		}
	}
	return nil
}

// Meta returns the value stored under key, or [ErrNotFound].
func (r *Reader) Meta(key string) (value []byte, err error) {
	var want int64
	err = r.q.QueryRow("SELECT value, sum FROM meta WHERE key = ?", key).Scan(&value, &want)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		err = ErrNotFound
	case err == nil && metaSum(key, value) != want:
		err = fmt.Errorf("%w: wrong checksum", ErrDamaged)
	}
	if err != nil {
		return nil, fmt.Errorf("journal: key %s: %w", key, classify(r.dir, err))
	}
	return value, nil
}

// SetMeta stores value under key, replacing an earlier value. Keys are single words.
func (j *Journal) SetMeta(key string, value []byte) error {
	return j.write("set "+key, func(tx *sql.Tx, h *head) error {
		if key == InstanceKey && len(value) <= maxInstance {
			h.instance = string(value)
		}
		if err := h.note(j.version, "key "+key, value); err != nil {
			return err
		}
		_, err := tx.Stmt(j.stmt.meta).Exec(key, blob(value), metaSum(key, value))
		return err
	})
}

// Metas returns the keys that begin with a text, in order, with their values.
func (r *Reader) Metas(prefix string) (all []MetaRow, err error) {
	rows, err := r.q.Query("SELECT key, value, sum FROM meta WHERE substr(key, 1, ?) = ? ORDER BY key", len(prefix), prefix)
	if err != nil {
		return nil, fmt.Errorf("journal: keys %s: %w", prefix, classify(r.dir, err))
	}
	defer rows.Close()
	for rows.Next() {
		var m MetaRow
		var want int64
		if err := rows.Scan(&m.Key, &m.Value, &want); err != nil {
			return nil, fmt.Errorf("journal: keys %s: %w", prefix, classify(r.dir, err))
		}
		if metaSum(m.Key, m.Value) != want {
			return nil, fmt.Errorf("journal: key %s: %w: wrong checksum", m.Key, ErrDamaged)
		}
		all = append(all, m)
	}
	return all, rows.Err()
}

// DropMeta removes a key. It ignores a key that does not exist.
func (j *Journal) DropMeta(key string) error {
	return j.write("drop "+key, func(tx *sql.Tx, _ *head) error {
		_, err := tx.Exec("DELETE FROM meta WHERE key = ?", key)
		return err
	})
}

const setMetaSQL = "INSERT OR REPLACE INTO meta (key, value, sum) VALUES (?, ?, ?)"
