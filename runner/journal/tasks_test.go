package journal

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func TestTasks(t *testing.T) {
	j := mustOpen(t, t.TempDir())
	row := func(id int64, name, user string, ended int64) TaskRow {
		return TaskRow{ID: id, Name: name, User: user, Phase: "p", Finished: ended > 0, Submitted: id, Ended: ended, Body: fmt.Append(nil, id)}
	}
	mustCommit(t, j, Batch{Tasks: []TaskRow{
		row(1, "a", "ann", 10), row(2, "b", "bob", 0), row(3, "a", "ann", 0),
		row(4, "", "bob", 5), row(5, "", "ann", 0), row(6, "c", "eve", 0), row(6, "c", "eve", 20),
	}})
	for _, tt := range []struct {
		f    Filter
		want string
	}{
		{Filter{}, "6 5 4 3 2 1"},
		{Filter{Limit: 2}, "6 5"},
		{Filter{Limit: 2, Before: 5}, "4 3"},
		{Filter{Unfinished: true}, "5 3 2"},
		{Filter{Unfinished: true, User: "ann"}, "5 3"},
		{Filter{User: "ann", Before: 5}, "3 1"},
		{Filter{User: "nobody"}, ""},
		{Filter{EndedBefore: 20}, "4 1"},
		{Filter{EndedBefore: 21, User: "eve"}, "6"},
		{Filter{EndedBefore: 20, Unfinished: true}, ""},
	} {
		rows, err := j.Tasks(tt.f)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, r := range rows {
			ids = append(ids, fmt.Sprint(r.ID))
			if !reflect.DeepEqual(r, row(r.ID, r.Name, r.User, r.Ended)) {
				t.Errorf("record %+v", r)
			}
		}
		if got := strings.Join(ids, " "); got != tt.want {
			t.Errorf("%+v: tasks %s, want %s", tt.f, got, tt.want)
		}
	}

	if r, err := j.TaskByName("a"); r.ID != 3 || err != nil {
		t.Errorf("newest a is %d (%v), want 3", r.ID, err)
	}
	if r, err := j.Task(4); r.User != "bob" || err != nil {
		t.Errorf("task 4: %+v, %v", r, err)
	}
	for _, name := range []string{"", "z"} {
		if _, err := j.TaskByName(name); !errors.Is(err, ErrNotFound) {
			t.Errorf("name %q: %v", name, err)
		}
	}
	if _, err := j.Task(7); !errors.Is(err, ErrNotFound) {
		t.Errorf("task 7: %v", err)
	}
}

// Task numbers are never given out twice, so they must outlive the records.
func TestMaxTaskID(t *testing.T) {
	dir := t.TempDir()
	j := mustOpen(t, dir)
	want := func(want int64) {
		t.Helper()
		if got, err := j.MaxTaskID(); got != want || err != nil {
			t.Errorf("highest task %d (%v), want %d", got, err, want)
		}
	}
	want(0)
	mustCommit(t, j, Batch{Tasks: []TaskRow{{ID: 9}, {ID: 12}, {ID: 10}}})
	want(12)
	if err := j.DeleteTasks(12, 10, 77); err != nil {
		t.Fatal(err)
	}
	if err := j.DeleteTasks(9); err != nil {
		t.Fatal(err)
	}
	want(12)
	j.Close()
	j = mustOpen(t, dir)
	want(12)
	mustCommit(t, j, Batch{Tasks: []TaskRow{{ID: 13}}})
	want(13)
}

// Listings stay quick with a million finished tasks if each uses an index and
// none sorts.
func TestListingsUseIndexes(t *testing.T) {
	j := mustOpen(t, t.TempDir())
	plan := func(where string, args ...any) string {
		rows, err := j.ro.Query("EXPLAIN QUERY PLAN SELECT "+taskColumns+" FROM tasks "+where, args...)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		var steps []string
		for rows.Next() {
			var id, parent, unused int
			var step string
			if err := rows.Scan(&id, &parent, &unused, &step); err != nil {
				t.Fatal(err)
			}
			steps = append(steps, step)
		}
		return strings.Join(steps, "; ")
	}
	for want, f := range map[string]Filter{
		"SEARCH tasks USING INTEGER PRIMARY KEY (rowid<?)":                             {Before: 3, Limit: 1},
		"SCAN tasks USING INDEX tasks_open":                                            {Unfinished: true},
		"SEARCH tasks USING INDEX tasks_user (user=?)":                                 {User: "u", Limit: 1},
		"SEARCH tasks USING INDEX tasks_user (user=? AND id<?)":                        {User: "u", Before: 3, Limit: 1},
		"SEARCH tasks USING INDEX tasks_user_open (user=?)":                            {User: "u", Unfinished: true},
		"SEARCH tasks USING INDEX tasks_ended (ended<?); USE TEMP B-TREE FOR ORDER BY": {EndedBefore: 3},
	} {
		where, args := f.sql()
		if got := plan(where, args...); got != want {
			t.Errorf("%+v: %s, want %s", f, got, want)
		}
	}
	if got := plan("WHERE name = ? AND name <> '' ORDER BY id DESC LIMIT 1", "x"); got != "SEARCH tasks USING INDEX tasks_name (name=?)" {
		t.Errorf("by name: %s", got)
	}
}
