package audit

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func all(*Record) bool { return true }

func add(t *testing.T, l *Log, r Record) {
	t.Helper()
	if err := l.Add(r, false); err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, dir string) *Log {
	t.Helper()
	l := New(dir)
	t.Cleanup(func() { l.Close() })
	return l
}

func tasks(t *testing.T, l *Log, limit int, fits func(*Record) bool) (text string, more bool, damaged int) {
	t.Helper()
	list, more, damaged, err := l.Read(limit, fits)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range list {
		text += fmt.Sprint(r.Task, " ")
	}
	return strings.TrimSpace(text), more, damaged
}

// TestRestart checks that records survive a restart, and that a line which a crash has cut
// off costs no other line.
func TestRestart(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	add(t, l, Record{Action: "stop", Task: 1})
	add(t, l, Record{Action: "stop", Task: 2})
	l.Close()
	if err := l.Add(Record{Action: "stop"}, false); err == nil {
		t.Error("a closed log takes a record")
	}
	path := filepath.Join(dir, "audit.jsonl")
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("nonsense\n" + `{"action":"st`); err != nil {
		t.Fatal(err)
	}
	f.Close()
	l = open(t, dir)
	add(t, l, Record{Action: "stop", Task: 3})
	if got, more, damaged := tasks(t, l, 10, all); got != "1 2 3" || more || damaged != 1 {
		t.Errorf("%s, more %v, %d damaged", got, more, damaged)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// TestRead checks the limit, the filter and the order.
func TestRead(t *testing.T) {
	l := open(t, t.TempDir())
	for i := range int64(5) {
		add(t, l, Record{Action: "stop", Task: i + 1})
	}
	if got, more, _ := tasks(t, l, 2, all); got != "4 5" || !more {
		t.Errorf("the newest two: %s, more %v", got, more)
	}
	if got, more, _ := tasks(t, l, 2, func(r *Record) bool { return r.Task < 3 }); got != "1 2" || more {
		t.Errorf("those that fit: %s, more %v", got, more)
	}
}

// TestBounded checks that the files have a limit, that the newest records stay, and that
// reading goes over all files.
func TestBounded(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	l.limit = 1000
	for i := range int64(200) {
		add(t, l, Record{Action: "stop", Task: i + 1, Detail: strings.Repeat("x", 2*maxDetail)})
	}
	found, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(found) != files {
		t.Fatal(found, err)
	}
	for _, path := range found {
		if info, err := os.Stat(path); err != nil || info.Size() > l.limit {
			t.Errorf("%s has %d bytes", path, info.Size())
		}
	}
	l.Close()
	if got, _, damaged := tasks(t, open(t, dir), 1000, all); !strings.HasSuffix(got, "197 198 199 200") || damaged != 0 {
		t.Errorf("%s, %d damaged", got, damaged)
	}
}

// TestQuiet checks that a reading that is repeated is recorded once, and every change each
// time.
func TestQuiet(t *testing.T) {
	l := open(t, t.TempDir())
	for range 3 {
		for _, r := range []Record{{Action: "output", Task: 1, Who: "ann"}, {Action: "output", Task: 2, Who: "ann"}, {Action: "output", Task: 1, Who: "bob"}} {
			if err := l.Add(r, true); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got, _, _ := tasks(t, l, 10, all); got != "1 2 1" {
		t.Error(got)
	}
	add(t, l, Record{Action: "stop", Task: 3})
	add(t, l, Record{Action: "stop", Task: 3})
	if got, _, _ := tasks(t, l, 10, all); got != "1 2 1 3 3" {
		t.Error(got)
	}
}
