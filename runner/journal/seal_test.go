package journal

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// oldJournal makes an empty journal as a carma of that schema made it.
func oldJournal(t *testing.T, dir string, version int) *sql.DB {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, dataFile), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := connect(dir, 1, writerPragmas)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	for v := range version {
		if _, err := db.Exec(migrations[v]); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.Exec(fmt.Sprintf("PRAGMA user_version = %d", version)); err != nil {
		t.Fatal(err)
	}
	return db
}

// fillOld writes events first to last of schema 2, a decision for every second
// one, and tasks.
func fillOld(t *testing.T, db *sql.DB, first, last int64) {
	t.Helper()
	exec := func(query string, args ...any) {
		t.Helper()
		if _, err := db.Exec(query, args...); err != nil {
			t.Fatal(err)
		}
	}
	for seq := first; seq <= last; seq++ {
		body := fmt.Appendf(nil, `{"n":%d}`, seq)
		exec("INSERT INTO events VALUES (?, ?, 'k', ?, ?)", seq, seq*10, body, sum(seq, seq*10, "k", body))
		if seq%2 == 0 {
			exec("INSERT INTO decisions VALUES (?, 0, 'd', ?)", seq, body)
		}
		exec("INSERT OR REPLACE INTO tasks VALUES (?, 'n', 'ann', 'queued', 0, 1, 0, ?, 'g')", seq%7+1, body)
	}
	exec("INSERT INTO meta VALUES ('instance', x'6162'), ('max task', x'3330')")
	exec("INSERT INTO snapshots VALUES (?, 5, x'7374', ?)", first+2, sum(first+2, 5, "", []byte("st")))
}

// TestSchema2: a journal of schema 2 is migrated with all its content.
func TestSchema2(t *testing.T) {
	for _, first := range []int64{1, 40} { // the second: older events were pruned
		dir := t.TempDir()
		old := oldJournal(t, dir, 2)
		fillOld(t, old, first, first+599)
		if err := old.Close(); err != nil {
			t.Fatal(err)
		}
		j := mustOpen(t, dir)
		from, to, err := j.Bounds()
		if from != first || to != first+599 || err != nil {
			t.Errorf("events %d to %d (%v), want %d on", from, to, err, first)
		}
		got := collect(t, &j.Reader, first-1)
		if len(got) != 600 || string(got[599].Body) != fmt.Sprintf(`{"n":%d}`, first+599) || got[0].At != first*10 {
			t.Errorf("%d events, the first %+v", len(got), got[0])
		}
		decisions := 0
		for _, err := range j.Decisions(0) {
			if err != nil {
				t.Fatal(err)
			}
			decisions++
		}
		decided, err := j.Decided()
		if decisions != 300 || err != nil || decided != (first+599)/2*2 {
			t.Errorf("%d decisions, decided up to %d (%v)", decisions, decided, err)
		}
		if rows, err := j.Tasks(Filter{Group: "g"}); len(rows) != 7 || err != nil || rows[0].User != "ann" {
			t.Errorf("tasks %v, %v", rows, err)
		}
		if id, err := j.MaxTaskID(); id != 30 || err != nil {
			t.Errorf("highest task %d, %v", id, err)
		}
		if v, err := j.Meta("instance"); string(v) != "ab" || err != nil {
			t.Errorf("instance %q, %v", v, err)
		}
		if s, err := j.Load(); s.Seq != first+2 || string(s.Body) != "st" || err != nil {
			t.Errorf("snapshot %+v, %v", s, err)
		}
		if seq := mustCommit(t, j, Batch{Events: events(1, "new")}); seq != first+600 {
			t.Errorf("the next event is %d", seq)
		}
		if err := errors.Join(j.Check(), j.Close()); err != nil {
			t.Error(err)
		}
		mustOpen(t, dir)
	}
}

// TestSchema2Damaged: rows that the old sums show to be damaged get no new
// sums.
func TestSchema2Damaged(t *testing.T) {
	for _, damage := range []string{"UPDATE events SET body = x'00' WHERE seq = 300", "DELETE FROM events WHERE seq = 300"} {
		dir := t.TempDir()
		old := oldJournal(t, dir, 2)
		fillOld(t, old, 1, 600)
		if _, err := old.Exec(damage); err != nil {
			t.Fatal(err)
		}
		if err := old.Close(); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the first attempt has changed nothing
			var r *Refusal
			if _, err := Open(dir); !errors.Is(err, ErrDamaged) || !errors.As(err, &r) || r.Fix == "" {
				t.Errorf("%s: %v", damage, err)
			}
		}
	}
}
