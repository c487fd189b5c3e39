package docker

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// logDir writes the files of a log, the newest first. It writes no file for an empty text.
func logDir(t *testing.T, most int, texts ...string) *logFiles {
	t.Helper()
	f := &logFiles{base: filepath.Join(t.TempDir(), "json.log"), most: most}
	for i, text := range texts {
		if text == "" {
			continue
		}
		if err := os.WriteFile(f.path(i), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(f.close)
	return f
}

// readAll reads to the end of what there is, and counts the gaps.
func (f *logFiles) readAll(t *testing.T) (lines []string, gaps int) {
	t.Helper()
	for {
		line, err := f.next()
		if err != nil {
			t.Fatal(err)
		}
		if line == nil {
			return lines, gaps
		}
		if f.gap {
			f.gap = false
			gaps++
		}
		lines = append(lines, string(line))
	}
}

// shift renames a file from one number to the next, as the engine does.
func (f *logFiles) shift(t *testing.T, number int) {
	t.Helper()
	if err := os.Rename(f.path(number), f.path(number+1)); err != nil {
		t.Fatal(err)
	}
}

// TestLookDuringRenaming: a reader that looks for new files between two renames of the
// engine misses none, and reports no gap where there is none.
func TestLookDuringRenaming(t *testing.T) {
	f := logDir(t, 4, "2\n", "1\n")
	if err := f.look(); err != nil || len(f.open) != 2 {
		t.Fatalf("%d files, %v", len(f.open), err)
	}
	f.read.Reset(f.open[0])
	if lines, gaps := f.readAll(t); len(lines) != 2 || gaps != 0 {
		t.Errorf("%q with %d gaps", lines, gaps)
	}
	// The file read last goes to number 1 and on to number 2, and the engine has not
	// yet renamed the newest one.
	f.shift(t, 1)
	f.shift(t, 0)
	if err := os.WriteFile(f.base, []byte("3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.shift(t, 2)
	f.shift(t, 1)
	renamed := make(chan struct{})
	go func() {
		defer close(renamed)
		time.Sleep(20 * time.Millisecond)
		_ = os.Rename(f.base, f.path(1))
		_ = os.WriteFile(f.base, []byte("4\n"), 0o600)
	}()
	lines, gaps := f.readAll(t)
	<-renamed
	more, moreGaps := f.readAll(t)
	if lines = append(lines, more...); len(lines) != 2 || lines[0] != "3" || lines[1] != "4" || gaps+moreGaps != 0 {
		t.Errorf("%q with %d gaps", lines, gaps+moreGaps)
	}
	// The first look at a log.
	g := &logFiles{base: f.base, most: 4}
	defer g.close()
	f.shift(t, 2)
	f.shift(t, 1)
	renamed = make(chan struct{})
	go func() {
		defer close(renamed)
		time.Sleep(20 * time.Millisecond)
		_ = os.Rename(f.base, f.path(1))
		_ = os.WriteFile(f.base, []byte("5\n"), 0o600)
	}()
	err := g.look()
	<-renamed
	if err != nil || len(g.open) < 3 {
		t.Errorf("%d files, %v", len(g.open), err)
	}
}

// TestLookAfterDeletion: a reader that finds a number without a file although the engine
// is not renaming continues with a gap.
func TestLookAfterDeletion(t *testing.T) {
	f := logDir(t, 4, "1\n")
	if err := f.look(); err != nil || len(f.open) != 1 {
		t.Fatalf("%d files, %v", len(f.open), err)
	}
	f.read.Reset(f.open[0])
	if err := os.Remove(f.base); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.base, []byte("3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if lines, gaps := f.readAll(t); len(lines) != 2 || gaps != 1 {
		t.Errorf("%q with %d gaps", lines, gaps)
	}
}
