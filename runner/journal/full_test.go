package journal

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// fillUp commits until there is no room, and returns the number of the last
// acknowledged event.
func fillUp(t *testing.T, j *Journal) (acked int64) {
	t.Helper()
	for range 10000 {
		b := Batch{Events: events(4, "fill"), Tasks: []TaskRow{{ID: acked + 1}}}
		b.Events[1].Body = make([]byte, 30000)
		first, err := j.Commit(b)
		if err != nil {
			if !errors.Is(err, ErrFull) {
				t.Fatalf("full disk: %v", err)
			}
			return acked
		}
		acked = first + 3
	}
	t.Fatal("it never got full")
	return 0
}

// checkFull checks that nothing of the failed commit is stored, for this journal and for
// others, and that reading still works.
func checkFull(t *testing.T, j *Journal, acked int64) {
	t.Helper()
	got := collect(t, &j.Reader, 0)
	if int64(len(got)) != acked {
		t.Errorf("%d events acknowledged, %d stored", acked, len(got))
	}
	if _, err := j.Task(acked + 1); !errors.Is(err, ErrNotFound) {
		t.Errorf("a task of the failed commit is there: %v", err)
	}
}

func TestDiskFull(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=3m"); err != nil {
		t.Skipf("a small file system is needed, which this user may not mount: %v", err)
	}
	defer func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	}()
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 4<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	if _, err := Open(filepath.Join(dir, "journal")); !errors.Is(err, ErrFull) {
		t.Errorf("open on a full disk: %v", err)
	}
	if err := os.Truncate(ballast, 1<<20); err != nil {
		t.Fatal(err)
	}
	j := mustOpen(t, filepath.Join(dir, "journal"))
	defer j.Close()
	for range 3 {
		acked := fillUp(t, j)
		checkFull(t, j, acked)
		if err := j.Snapshot(acked, 0, make([]byte, 2<<20)); !errors.Is(err, ErrFull) {
			t.Errorf("snapshot on a full disk: %v", err)
		}
		if err := os.Truncate(ballast, 0); err != nil {
			t.Fatal(err)
		}
		if first := mustCommit(t, j, Batch{Events: events(1, "room")}); first != acked+1 {
			t.Errorf("event numbers go on at %d, want %d", first, acked+1)
		}
		if err := j.Check(); err != nil {
			t.Error(err)
		}
		// Make it tight again, in a journal with a history of failures.
		tamper(t, j, "DELETE FROM events")
		tamper(t, j, "DELETE FROM tasks")
		tamper(t, j, "VACUUM")
		tamper(t, j, "PRAGMA wal_checkpoint(TRUNCATE)")
		j.at = head{id: j.at.id, commits: j.at.commits}
		if err := os.WriteFile(ballast, make([]byte, 1<<20), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// The same test on machines where tests cannot mount a file system: SQLite
// reports its own page limit as a full disk.
func TestDatabaseFull(t *testing.T) {
	j := mustOpen(t, t.TempDir())
	tamper(t, j, "PRAGMA max_page_count = 100")
	acked := fillUp(t, j)
	checkFull(t, j, acked)
	tamper(t, j, "PRAGMA max_page_count = 100000")
	if first := mustCommit(t, j, Batch{Events: events(1, "room")}); first != acked+1 {
		t.Errorf("event numbers go on at %d, want %d", first, acked+1)
	}
}

func TestFailedCommitStoresNothing(t *testing.T) {
	j := mustOpen(t, t.TempDir())
	mustCommit(t, j, Batch{Events: events(2, "x")})
	for name, b := range map[string]Batch{
		"decision of a later event": {Events: events(1, "y"), Decisions: []Decision{{Seq: 4}}},
		"decision of no event":      {Events: events(1, "y"), Decisions: []Decision{{Seq: 0}}},
		"task without a number":     {Events: events(1, "y"), Tasks: []TaskRow{{ID: 5}, {ID: 0}}},
	} {
		if _, err := j.Commit(b); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	checkFull(t, j, 2)
	if max, err := j.MaxTaskID(); max != 0 || err != nil {
		t.Errorf("task %d is there (%v)", max, err)
	}
	if first := mustCommit(t, j, Batch{Events: events(1, "z")}); first != 3 {
		t.Errorf("next event is %d, want 3", first)
	}
}
