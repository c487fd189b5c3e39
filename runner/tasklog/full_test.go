package tasklog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"
)

// disk fails writes beyond its room, also in the middle of a write, like a full
// disk.
type disk struct {
	room int64
	full bool // also no new files
}

type diskFile struct {
	file
	d *disk
}

func (f diskFile) WriteAt(b []byte, off int64) (int, error) {
	n := min(int64(len(b)), f.d.room)
	f.d.room -= n
	m, err := f.file.WriteAt(b[:n], off)
	if err == nil && m < len(b) {
		err = &fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}
	}
	return m, err
}

// tick returns the time of the next line.
func tick(w *Writer) time.Time {
	if w.last.IsZero() {
		return epoch
	}
	return w.last.Add(1)
}

func diskStore(t *testing.T, d *disk) *Store {
	s := Open(t.TempDir(), 1)
	open := s.open
	s.open = func(path string, flag int) (file, error) {
		if d.full {
			return nil, &fs.PathError{Op: "open", Path: path, Err: syscall.ENOSPC}
		}
		f, err := open(path, flag)
		return diskFile{f, d}, err
	}
	return s
}

// TestFullForAWhile: the disk is full for some time, beginning at any byte of a line. Output
// that fits in memory is kept; the rest is counted and recorded in its place. The error is
// returned once, and no line is torn.
func TestFullForAWhile(t *testing.T) {
	for room := int64(0); room < 300; room += 7 {
		d := &disk{room: room}
		s := diskStore(t, d)
		w := mustWriter(t, s, 1, 1)
		const lines = 3 * bufferSize / 1000
		reports := 0
		for i := range lines {
			if err := w.Write(tick(w), Stdout, fmt.Appendf(nil, "%04d %s", i, strings.Repeat("x", 950)), false); err != nil {
				reports++
				if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "log of task 1, attempt 1: ") {
					t.Errorf("report %v", err)
				}
			}
			if err := w.Flush(); err != nil {
				reports++
			}
		}
		if reports != 1 {
			t.Errorf("the error is reported %d times", reports)
		}
		lost, _ := w.Lost()
		if lost == 0 || lost >= lines {
			t.Fatalf("lost %d lines", lost)
		}
		d.room = 1 << 30
		write(t, w, time.Hour, Stdout, "room again")
		closeLog(t, w)

		got := texts(t, s, 0)
		kept := lines - int(lost)
		if len(got) != kept+2 {
			t.Fatalf("%d lines in the log, want %d", len(got), kept+2)
		}
		for i, l := range got[:kept] {
			if !strings.HasPrefix(l, fmt.Sprintf("o:%04d ", i)) || len(l) != 957 {
				t.Errorf("line %d is %.20s", i, l)
			}
		}
		if !strings.HasPrefix(got[kept], fmt.Sprintf("m:%d lines (", lost)) || !strings.HasSuffix(got[kept], "left out here: no space left on device") {
			t.Errorf("note %q", got[kept])
		}
		if got[kept+1] != "o:room again" {
			t.Errorf("after it %.20s", got[kept+1])
		}
	}
}

// A short line that would still fit in memory does not overtake the note about
// a long line that did not.
func TestNoteStaysInPlace(t *testing.T) {
	d := &disk{}
	s := diskStore(t, d)
	w := mustWriter(t, s, 1, 1)
	long := strings.Repeat("x", 50000)
	for _, text := range []string{long, long, long, "short"} {
		_ = w.Write(tick(w), Stdout, []byte(text), false) // reported above
	}
	d.room = 1 << 30
	write(t, w, time.Hour, Stdout, "room again")
	closeLog(t, w)
	got := texts(t, s, 0)
	if len(got) != 4 || !strings.HasPrefix(got[2], "m:2 lines (") || got[3] != "o:room again" {
		t.Errorf("%d lines, %.30q", len(got), got)
	}
}

// TestFullAtTheEnd: the attempt ends while the disk is full: Close reports the losses and
// leaves whole lines.
func TestFullAtTheEnd(t *testing.T) {
	d := &disk{room: 100}
	s := diskStore(t, d)
	w := mustWriter(t, s, 1, 1)
	for i := range 5 {
		write(t, w, time.Duration(i), Stdout, fmt.Sprint("line ", i)) // 45 bytes each
	}
	if err := w.Close(); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "3 lines") {
		t.Errorf("close: %v", err)
	}
	b, err := os.ReadFile(s.path(w.k, segment{attempt: 1}))
	if err != nil || strings.Count(string(b), "\n") != 2 || !strings.HasSuffix(string(b), "line 1\n") {
		t.Errorf("file %q, %v", b, err)
	}
}

// TestFullWhenRotating checks that the log does not change while no new file can be made.
func TestFullWhenRotating(t *testing.T) {
	d := &disk{room: 1 << 30}
	s := diskStore(t, d)
	w := mustWriter(t, s, 1, 1)
	text := strings.Repeat("x", 10000)
	reports := 0
	for i := range 40 {
		d.full = i < 30
		if err := w.Write(tick(w), Stdout, fmt.Append(nil, i, " ", text), false); err != nil {
			reports++
		}
	}
	lost, _ := w.Lost()
	if lost == 0 || reports != 1 {
		t.Errorf("lost %d lines, reported %d times", lost, reports)
	}
	closeLog(t, w)
	got := texts(t, s, 0)
	at := 30 - int(lost)
	if len(got) != 41-int(lost) || !strings.HasPrefix(got[at], fmt.Sprintf("m:%d lines", lost)) || !strings.HasPrefix(got[at+1], "o:30 ") {
		t.Errorf("%d lines, lost %d, note %.50q", len(got), lost, got[at])
	}
}

// TestFullBehindANewSegment checks that no stored line is lost if the disk gets full right
// after a new segment has begun. After a crash, the last stored line determines from where the
// output is read again. Once, the segment with that line was the one that made the room.
func TestFullBehindANewSegment(t *testing.T) {
	free := int64(1 << 40)
	dir := t.TempDir()
	open := func() (*Store, *Writer) {
		s := New(dir, Limits{Attempt: MinLimit, Free: 1})
		s.disk = func(string) (int64, int64, error) { return 1 << 40, free, nil }
		return s, mustWriter(t, s, 1, 1)
	}
	text := strings.Repeat("x", MaxLine*2/3)
	all := func(w *Writer, n int) {
		for i := range n {
			_ = w.Write(epoch.Add(time.Duration(i+1)), Stdout, fmt.Appendf(nil, "%d %s", i, text), false)
		}
	}
	for n := 1; n < 40; n++ { // wherever a new segment begins
		free = 1 << 40
		_, w := open()
		all(w, n)
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		free = 0
		all(w, n+12) // more than the memory holds
		_ = w.Flush()
		crash(w)
		_, w = open()
		all(w, n+12)
		crash(w)
		free = 1 << 40
		s, w := open()
		all(w, n+12)
		closeLog(t, w)
		got := texts(t, s, 0)
		if next := numbered(t, got); next != n+12 {
			t.Fatalf("disk full behind line %d: %d lines are kept or noted, %d were printed", n, next, n+12)
		}
		if err := os.RemoveAll(s.folder(1)); err != nil {
			t.Fatal(err)
		}
	}
}

// numbered checks that lines and notes follow each other, and counts them.
func numbered(t *testing.T, lines []string) (next int) {
	for _, l := range lines {
		n := 0
		if _, err := fmt.Sscanf(l, "m:%d lines", &n); err == nil {
			next += n
		} else if _, err := fmt.Sscanf(l, "o:%d ", &n); err != nil || n != next {
			t.Fatalf("line %.20q comes where number %d should: %v", l, next, err)
		} else {
			next++
		}
	}
	return next
}

func TestRealDiskFull(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=512k"); err != nil {
		t.Skipf("a small file system is needed, which this user may not mount: %v", err)
	}
	defer func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	}()
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 400<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	s := Open(dir, 0)
	s.limits.Load().Free = 0
	w := mustWriter(t, s, 1, 1)
	reports := 0
	for i := range 500 {
		if err := w.Write(epoch.Add(time.Duration(i)), Stdout, fmt.Appendf(nil, "%d %01000d", i, 0), false); err != nil {
			if !errors.Is(err, syscall.ENOSPC) {
				t.Error(err)
			}
			reports++
		}
	}
	lost, _ := w.Lost()
	if reports != 1 || lost == 0 {
		t.Errorf("reported %d times, lost %d lines", reports, lost)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	write(t, w, time.Second, Stdout, "room again")
	closeLog(t, w)
	got := texts(t, s, 2)
	if len(got) != 2 || !strings.HasPrefix(got[0], fmt.Sprintf("m:%d lines", lost)) || got[1] != "o:room again" {
		t.Errorf("end of the log %q", got)
	}
	if all := texts(t, s, 0); len(all) != 500-int(lost)+2 {
		t.Errorf("%d lines, lost %d", len(all), lost)
	}
}

// TestOpenFails: a log that cannot be opened does not stay locked. Output that comes
// meanwhile is counted, and recorded once it can be.
func TestOpenFails(t *testing.T) {
	d := &disk{full: true}
	s := diskStore(t, d)
	w := mustWriter(t, s, 1, 1)
	if err := w.Flush(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("open: %v", err)
	}
	write(t, w, 0, Stdout, "lost")
	if err := w.Close(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("close: %v", err)
	}
	w = mustWriter(t, s, 1, 1)
	if err := w.Flush(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("open: %v", err)
	}
	write(t, w, 0, Stdout, "lost")
	d.full, d.room = false, 1<<20
	write(t, w, 1, Stdout, "x")
	closeLog(t, w)
	if got := texts(t, s, 0); !reflect.DeepEqual(got, []string{"m:1 lines (45 bytes) left out here: no space left on device", "o:x"}) {
		t.Errorf("log %q", got)
	}
}

// TestNotedAfterTheEnd: output that an attempt lost until its end, because the disk was
// full, is recorded when there is room again, unless the task was removed.
func TestNotedAfterTheEnd(t *testing.T) {
	d := &disk{room: 1 << 20}
	s := diskStore(t, d)
	for task := int64(1); task <= 3; task++ {
		w := mustWriter(t, s, task, 1)
		write(t, w, 0, Stdout, "kept")
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		d.room, d.full = 0, task == 3
		write(t, w, 1, Stdout, "lost")
		if err := w.Close(); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("close: %v", err)
		}
		d.room = 1 << 20
	}
	if err := s.Remove(2); err != nil {
		t.Fatal(err)
	}
	d.room = 0
	s.NoteLosses() // in vain
	d.room, d.full = 1<<20, false
	s.NoteLosses()
	s.NoteLosses() // nothing is left to note
	for _, task := range []int64{1, 3} {
		if got, err := s.Tail(task, 1, 10); err != nil || len(got) != 2 || got[1].Stream != Note || !strings.Contains(string(got[1].Text), "1 lines (45 bytes) left out here: no space left on device") {
			t.Errorf("task %d: log %v, %v", task, got, err)
		}
	}
	if tasks, err := s.Tasks(); err != nil || len(tasks) != 2 {
		t.Errorf("output of tasks %v, %v", tasks, err)
	}
}
