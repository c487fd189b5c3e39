package journal

import (
	"fmt"
	"strings"
	"testing"
)

// TestGroups: a filter by group; and a journal from before there were groups
// opens with all its tasks.
func TestGroups(t *testing.T) {
	dir := t.TempDir()
	old := oldJournal(t, dir, 1)
	for id, name := range []string{"a", "b"} {
		_, err := old.Exec("INSERT INTO tasks VALUES (?, ?, '', '', 0, 0, 0, x'')", id+1, name)
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenReadOnly(dir); err == nil || !strings.Contains(err.Error(), "start the daemon once to migrate it") {
		t.Errorf("reading an old journal: %v", err)
	}
	j := mustOpen(t, dir)
	mustCommit(t, j, Batch{Tasks: []TaskRow{{ID: 3, Group: "g"}, {ID: 4, Group: "h"}, {ID: 5, Group: "g", Finished: true}}})
	for group, want := range map[string]string{"": "5 4 3 2 1", "g": "5 3", "h": "4", "i": ""} {
		rows, err := j.Tasks(Filter{Group: group})
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, r := range rows {
			ids = append(ids, fmt.Sprint(r.ID))
			if group != "" && r.Group != group {
				t.Errorf("group %s: %+v", group, r)
			}
		}
		if got := strings.Join(ids, " "); got != want {
			t.Errorf("group %q has %s, want %s", group, got, want)
		}
	}
	var plan string
	err := j.db.QueryRow("EXPLAIN QUERY PLAN SELECT id FROM tasks WHERE grp = 'g' AND grp <> '' ORDER BY id").Scan(new(int), new(int), new(int), &plan)
	if err != nil || !strings.Contains(plan, "tasks_group") {
		t.Errorf("tasks of a group are found by %q, %v", plan, err)
	}
}
