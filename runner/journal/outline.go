package journal

import "fmt"

// Outline is a task's record without its body.
type Outline struct {
	ID       int64
	User     string
	Group    string
	Finished bool
	Ended    int64 // nanoseconds since the Unix epoch, or 0 while the task is not finished
}

// Oldest selects finished tasks, in order of their ends. Instants are in
// nanoseconds since the Unix epoch.
type Oldest struct {
	User   string // only this user's, or everyone's if empty
	From   int64  // only tasks that ended then or later
	Before int64  // only tasks that ended before, or any if 0
	Limit  int
}

// Oldest returns the finished tasks that o selects.
func (r *Reader) Oldest(o Oldest) ([]Outline, error) {
	where, args := "finished = 1 AND ended >= ?", []any{o.From}
	if o.Before != 0 {
		where, args = where+" AND ended < ?", append(args, o.Before)
	}
	if o.User != "" {
		where, args = where+" AND +user = ?", append(args, o.User)
	}
	return r.outlines(where+" ORDER BY ended, id LIMIT ?", append(args, o.Limit)...)
}

// Outlines returns the tasks with numbers from first to last.
func (r *Reader) Outlines(first, last int64) ([]Outline, error) {
	return r.outlines("id BETWEEN ? AND ?", first, last)
}

func (r *Reader) outlines(where string, args ...any) (out []Outline, err error) {
	rows, err := r.q.Query("SELECT id, user, grp, finished, ended FROM tasks WHERE "+where, args...)
	if err != nil {
		return nil, fmt.Errorf("tasks: %w", classify(r.dir, err))
	}
	defer rows.Close()
	for rows.Next() {
		var t Outline
		if err := rows.Scan(&t.ID, &t.User, &t.Group, &t.Finished, &t.Ended); err != nil {
			return nil, fmt.Errorf("tasks: %w", classify(r.dir, err))
		}
		out = append(out, t)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("tasks: %w", classify(r.dir, err))
	}
	return out, nil
}

// FinishedByUser counts the finished tasks of each user, from the indexes alone.
func (r *Reader) FinishedByUser() (map[string]int, error) {
	rows, err := r.q.Query(`SELECT user, count(*) - (SELECT count(*) FROM tasks o WHERE o.user = t.user AND o.finished = 0)
		FROM tasks t GROUP BY user`)
	if err != nil {
		return nil, fmt.Errorf("count tasks: %w", classify(r.dir, err))
	}
	defer rows.Close()
	users := map[string]int{}
	for rows.Next() {
		user, n := "", 0
		if err := rows.Scan(&user, &n); err != nil {
			return nil, fmt.Errorf("count tasks: %w", classify(r.dir, err))
		}
		users[user] = n
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("count tasks: %w", classify(r.dir, err))
	}
	return users, nil
}
