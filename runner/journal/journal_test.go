package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func mustOpen(t testing.TB, dir string) *Journal {
	t.Helper()
	j, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

func mustCommit(t testing.TB, j *Journal, b Batch) int64 {
	t.Helper()
	first, err := j.Commit(b)
	if err != nil {
		t.Fatal(err)
	}
	return first
}

// events makes n events with distinct bodies.
func events(n int, tag string) []Event {
	evs := make([]Event, n)
	for i := range evs {
		evs[i] = Event{At: int64(i), Kind: "kind-" + tag, Body: fmt.Appendf(nil, `{"%s":%d}`, tag, i)}
	}
	return evs
}

func collect(t testing.TB, r *Reader, after int64) []Event {
	t.Helper()
	var got []Event
	for e, err := range r.Events(after) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e)
	}
	return got
}

// tamper changes the stored rows behind the journal's back.
func tamper(t testing.TB, j *Journal, query string, args ...any) {
	t.Helper()
	if _, err := j.db.Exec(query, args...); err != nil {
		t.Fatal(err)
	}
}

func TestReopen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a b%3f#?", "journal")
	j := mustOpen(t, dir)
	if first := mustCommit(t, j, Batch{Events: events(3, "x")}); first != 1 {
		t.Errorf("first event is %d", first)
	}
	if first := mustCommit(t, j, Batch{}); first != 4 {
		t.Errorf("an empty batch says the next event is %d, want 4", first)
	}
	mustCommit(t, j, Batch{
		Events:    []Event{{At: 7, Kind: "y"}},
		Decisions: []Decision{{Seq: 4, N: 0, Kind: "d"}, {Seq: 1, N: 1, Kind: "e", Body: []byte("2")}, {Seq: 1, N: 0, Kind: "e"}},
	})
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, dataFile+"-wal")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("close left the write-ahead log behind: %v", err)
	}

	j = mustOpen(t, dir)
	got := collect(t, &j.Reader, 0)
	if len(got) != 4 || string(got[1].Body) != `{"x":1}` || got[3].At != 7 || got[3].Kind != "y" || got[3].Seq != 4 {
		t.Errorf("events after reopening: %+v", got)
	}
	var order []string
	for d, err := range j.Decisions(0) {
		order = append(order, fmt.Sprint(d.Seq, ".", d.N, d.Kind, string(d.Body), err))
	}
	if s := strings.Join(order, ","); s != "1.0e<nil>,1.1e2<nil>,4.0d<nil>" {
		t.Errorf("decisions %s", s)
	}
	if first := mustCommit(t, j, Batch{Events: events(1, "z")}); first != 5 {
		t.Errorf("first event after reopening is %d, want 5", first)
	}
	if err := j.Check(); err != nil {
		t.Error(err)
	}
}

// A test on a running machine cannot show the effect of a power failure: data that SQLite
// has handed to the kernel survives the death of the process with any settings. So this one
// only checks that the settings are in force.
func TestDurabilitySettings(t *testing.T) {
	j := mustOpen(t, t.TempDir())
	for pragma, want := range map[string]string{"synchronous": "2", "journal_mode": "wal", "busy_timeout": "10000"} {
		var got string
		if err := j.db.QueryRow("PRAGMA " + pragma).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %s, want %s (%v)", pragma, got, want, err)
		}
	}
	if n := j.db.Stats().MaxOpenConnections; n != 1 {
		t.Errorf("%d connections for writing, want 1", n)
	}
}

func TestFilesArePrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "journal")
	j := mustOpen(t, dir)
	mustCommit(t, j, Batch{Events: events(1, "x")})
	seen := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		seen++
		return err
	})
	if err != nil || seen < 5 { // the folder, lock, database, log and its index
		t.Errorf("saw %d files, %v", seen, err)
	}
}

func TestTwoDaemons(t *testing.T) {
	dir := t.TempDir()
	j := mustOpen(t, dir)
	_, err := Open(dir)
	if !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), fmt.Sprintf("by process %d", os.Getpid())) {
		t.Errorf("second daemon: %v", err)
	}
	mustCommit(t, j, Batch{Events: events(1, "x")}) // the first is not disturbed
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	mustOpen(t, dir)
}

func TestNewerSchema(t *testing.T) {
	dir := t.TempDir()
	j := mustOpen(t, dir)
	mustCommit(t, j, Batch{Events: events(1, "x")})
	tamper(t, j, "ALTER TABLE tasks ADD COLUMN newer INTEGER")
	tamper(t, j, fmt.Sprintf("PRAGMA user_version = %d", schemaVersion+1))
	j.Close()

	_, err := Open(dir)
	if !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), fmt.Sprintf("schema %d, this carma knows up to %d", schemaVersion+1, schemaVersion)) {
		t.Errorf("open: %v", err)
	}
	if _, err := OpenReadOnly(dir); !errors.Is(err, ErrNewer) {
		t.Errorf("open for reading: %v", err)
	}
}

func TestNotADatabase(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, dataFile), []byte(strings.Repeat("nonsense ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the lock of the first attempt is gone
		if _, err := Open(dir); !errors.Is(err, ErrDamaged) {
			t.Errorf("open: %v", err)
		}
	}
}

func TestReadOnly(t *testing.T) {
	dir := t.TempDir()
	if _, err := OpenReadOnly(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("nothing there: %v", err)
	}
	j := mustOpen(t, dir)
	mustCommit(t, j, Batch{Events: events(2, "x")})

	r, err := OpenReadOnly(dir) // beside the daemon
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	mustCommit(t, j, Batch{Events: events(2, "y")})
	if got := collect(t, r, 0); len(got) != 4 {
		t.Errorf("beside the daemon: %d events", len(got))
	}
	if _, err := r.ro.Exec("DELETE FROM events"); err == nil {
		t.Error("a reader can write")
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if got := collect(t, r, 2); len(got) != 2 {
		t.Errorf("after the daemon: %d events", len(got))
	}
}

func TestMeta(t *testing.T) {
	j := mustOpen(t, t.TempDir())
	if _, err := j.Meta("k"); !errors.Is(err, ErrNotFound) {
		t.Errorf("missing key: %v", err)
	}
	for _, v := range []string{"a", "", "b"} {
		if err := j.SetMeta("k", []byte(v)); err != nil {
			t.Fatal(err)
		}
		if got, err := j.Meta("k"); err != nil || string(got) != v {
			t.Errorf("got %q, %v", got, err)
		}
	}
}

func TestDecided(t *testing.T) {
	dir := t.TempDir()
	j := mustOpen(t, dir)
	want := func(seq int64) {
		t.Helper()
		if got, err := j.Decided(); got != seq || err != nil {
			t.Errorf("decided up to event %d (%v), want %d", got, err, seq)
		}
	}
	want(0)
	mustCommit(t, j, Batch{Events: events(4, "x"), Decisions: []Decision{{Seq: 2}, {Seq: 3}}})
	want(0)
	mustCommit(t, j, Batch{Decided: 4})
	want(4)
	mustCommit(t, j, Batch{Events: events(2, "y"), Decisions: []Decision{{Seq: 6}}, Decided: 5})
	want(5)
	mustCommit(t, j, Batch{Events: events(1, "z")})
	want(5)
	if _, err := j.Commit(Batch{Events: events(1, "z"), Decided: 9}); err == nil {
		t.Error("decisions of an event that is not there")
	}
	want(5)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j = mustOpen(t, dir)
	want(5)
}
