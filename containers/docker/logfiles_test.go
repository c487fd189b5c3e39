package docker

import (
	"os"
	"path/filepath"
	"strings"
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

// TestLookDuringRenaming: a reader that searches new files between two renames of the engine
// misses none, and does not report a false gap.
func TestLookDuringRenaming(t *testing.T) {
	f := logDir(t, 4, "2\n", "1\n")
	if err := f.look(lookTries); err != nil || len(f.open) != 2 {
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
	err := g.look(lookTries)
	<-renamed
	if err != nil || len(g.open) < 3 {
		t.Errorf("%d files, %v", len(g.open), err)
	}
}

// TestLookAfterDeletion: a reader that finds a number without a file although the engine
// is not renaming continues with a gap.
func TestLookAfterDeletion(t *testing.T) {
	f := logDir(t, 4, "1\n")
	if err := f.look(lookTries); err != nil || len(f.open) != 1 {
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

// TestLookWhileReading: the engine begins ten files while a reader takes the lines of the
// first one, and keeps three. The reader misses nothing, unless it is mostHeld bytes
// behind.
func TestLookWhileReading(t *testing.T) {
	line := strings.Repeat("x", 1023) + "\n"
	file := strings.Repeat(line, 6*lookEvery/len(line))
	for _, row := range []struct{ begun, gaps int }{{10, 0}, {60, 1}} {
		f := logDir(t, 3, file)
		if f.mostHeld = int64(16 * len(file)); f.look(lookTries) != nil || len(f.open) != 1 {
			t.Fatalf("%d files", len(f.open))
		}
		f.read.Reset(f.open[0])
		read, gaps := 0, 0
		for begun := 0; ; read++ {
			b, err := f.next()
			if err != nil || len(f.open) > 16+3 {
				t.Fatalf("%v with %d files open", err, len(f.open))
			}
			if b == nil {
				break
			}
			if f.gap {
				f.gap, gaps = false, gaps+1
			}
			if begun < row.begun && read%(lookEvery/len(line)) == 0 {
				begun++
				_ = os.Remove(f.path(2))
				for i := 1; i >= 0; i-- {
					if err := os.Rename(f.path(i), f.path(i+1)); err != nil && !os.IsNotExist(err) {
						t.Fatal(err)
					}
				}
				if err := os.WriteFile(f.base, []byte(file), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		if whole := read == (row.begun+1)*len(file)/len(line); gaps > 0 != (row.gaps > 0) || whole != (gaps == 0) {
			t.Errorf("%d files begun: %d lines and %d gaps", row.begun, read, gaps)
		}
	}
}
