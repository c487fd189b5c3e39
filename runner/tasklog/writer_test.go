package tasklog

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var epoch = time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)

func mustWriter(t testing.TB, s *Store, task int64, attempt int) *Writer {
	t.Helper()
	w, err := s.Writer(task, attempt)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// write writes a line, later than the one before.
func write(t testing.TB, w *Writer, at time.Duration, stream Stream, text string) {
	t.Helper()
	again(t, w, max(at, w.Last().Sub(epoch)+1), stream, text)
}

// again writes a line that may have come before.
func again(t testing.TB, w *Writer, at time.Duration, stream Stream, text string) {
	t.Helper()
	if err := w.Write(epoch.Add(at), stream, []byte(text), false); err != nil {
		t.Fatal(err)
	}
}

func closeLog(t testing.TB, w *Writer) {
	t.Helper()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// crash ends a writer as the end of the process does.
func crash(w *Writer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.f.Close()
	w.closed = true
	w.forget()
	w.wake()
}

// texts returns all lines of a log, each after the first letter of its stream.
func texts(t testing.TB, s *Store, tail int) []string {
	t.Helper()
	lines, err := s.Tail(1, 1, tail)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range lines {
		got = append(got, l.Stream.String()[3:4]+":"+string(l.Text))
	}
	return got
}

func TestFormat(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "logs")
	s := Open(dir, 0)
	w := mustWriter(t, s, 17, 2)
	write(t, w, 123456789, Stdout, "hello\n")
	write(t, w, time.Second, Stderr, "")
	if err := w.Write(epoch.Add(time.Hour), Stdout, []byte("go"), true); err != nil {
		t.Fatal(err)
	}
	write(t, w, time.Hour, Stdout, "ne\r")
	closeLog(t, w)
	closeLog(t, w)
	if err := w.Write(epoch, Stdout, nil, false); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("write after close: %v", err)
	}
	path := filepath.Join(dir, "17", "2.log")
	b, err := os.ReadFile(path)
	want := `2026-11-21T03:00:00.123456789Z stdout F hello
2026-11-21T03:00:01.000000000Z stderr F 
2026-11-21T04:00:00.000000000Z stdout P go
2026-11-21T04:00:00.000000001Z stdout F ne` + "\r\n"
	if string(b) != want || err != nil {
		t.Errorf("file %q (%v), want %q", b, err, want)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestLongLinesAndNewlinesAreSplit(t *testing.T) {
	s := Open(t.TempDir(), 0)
	w := mustWriter(t, s, 1, 1)
	long := strings.Repeat("x", 2*MaxLine+5)
	if err := w.Write(epoch, Stdout, []byte("a\n"+long+"\n\nb"), true); err != nil {
		t.Fatal(err)
	}
	closeLog(t, w)
	lines, err := s.Tail(1, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range lines {
		got = append(got, fmt.Sprint(len(l.Text), l.Partial))
	}
	want := "1 false,65536 true,65536 true,5 false,0 false,1 true"
	if s := strings.Join(got, ","); s != want {
		t.Errorf("pieces %s, want %s", s, want)
	}
}

func TestOneWriter(t *testing.T) {
	s := Open(t.TempDir(), 0)
	w := mustWriter(t, s, 1, 1)
	if _, err := s.Writer(1, 1); !errors.Is(err, ErrOpen) {
		t.Errorf("second writer: %v", err)
	}
	closeLog(t, mustWriter(t, s, 1, 2))
	closeLog(t, mustWriter(t, s, 2, 1))
	if got, err := s.Attempts(1); fmt.Sprint(got) != "[1 2]" || err != nil {
		t.Errorf("attempts %v, %v", got, err)
	}
	if err := s.Remove(1); !errors.Is(err, ErrOpen) {
		t.Errorf("remove while written: %v", err)
	}
	closeLog(t, w)
	for range 2 {
		if err := s.Remove(1); err != nil {
			t.Error(err)
		}
	}
	if got, err := s.Attempts(1); got != nil || err != nil {
		t.Errorf("attempts %v, %v", got, err)
	}
	if got, err := s.Attempts(2); fmt.Sprint(got) != "[1]" || err != nil {
		t.Errorf("attempts of another task %v, %v", got, err)
	}
}

func TestSegmentNames(t *testing.T) {
	for _, g := range []segment{{1, 0, 0}, {12, 300, 4}} {
		if got, ok := parseName(g.name()); !ok || got != g {
			t.Errorf("%s is %+v, %v", g.name(), got, ok)
		}
	}
	for _, name := range []string{"", "x.log", "1", "1.2.log", "-1.log", "01.log", "1.2.3.4.log", "1.0.0.log", "1.log.gz"} {
		if g, ok := parseName(name); ok {
			t.Errorf("%s is %+v", name, g)
		}
	}
}

// TestTornEnd: for any lost part of the end of the file, opening it again leaves whole
// lines and gives the time from which to read again. Writing all lines from then gives the
// same log as without the loss.
func TestTornEnd(t *testing.T) {
	full := func(w *Writer, from time.Time) {
		for i := range 40 {
			at := epoch.Add(time.Duration(i) * 200 * time.Millisecond)
			if i%2 == 0 || at.After(from) { // some come again
				if err := w.Write(at, Stream(1+i%2), fmt.Appendf(nil, "line %d", i/5), i%7 == 0); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	s := Open(t.TempDir(), 0)
	w := mustWriter(t, s, 1, 1)
	full(w, time.Time{})
	closeLog(t, w)
	path := s.path(w.k, segment{attempt: 1})
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for cut := range len(want) + 1 {
		for _, garbage := range []string{"", "\x00\x00\x00", "\x00\n\x00"} {
			if strings.Contains(garbage, "\n") && cut > 0 && want[cut-1] != '\n' {
				continue // would complete the torn line
			}
			if err := errors.Join(os.Remove(path), os.WriteFile(path, append(want[:cut:cut], garbage...), 0o600)); err != nil { // writing over it syncs

				t.Fatal(err)
			}
			w := mustWriter(t, s, 1, 1)
			kept := want[:bytes.LastIndexByte(want[:cut], '\n')+1]
			if last := lastTime(kept); !w.Last().Equal(last) {
				t.Fatalf("cut at %d: last %v, want %v", cut, w.Last(), last)
			}
			full(w, w.Since())
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
			crash(w) // closing would sync some 3000 times
			if got, err := os.ReadFile(path); !bytes.Equal(got, want) || err != nil {
				t.Fatalf("cut at %d, then %q: %v\n%s", cut, garbage, err, got)
			}
		}
	}
}

func lastTime(b []byte) (last time.Time) {
	for line := range bytes.Lines(b) {
		l, _ := parseLine(bytes.TrimSuffix(line, []byte("\n")))
		last = l.At
	}
	return last
}

// TestResume: after a crash the engine may send the whole output instead of the requested
// part. Lines that were recorded as lost do not reappear.
func TestResume(t *testing.T) {
	const ms = time.Millisecond
	s := Open(t.TempDir(), 0)
	w := mustWriter(t, s, 1, 1)
	again(t, w, 1*ms, Stdout, "a")
	again(t, w, 2*ms, Stdout, "a")
	w.Gap(epoch.Add(4*ms), 2, "they never came")
	again(t, w, 5*ms, Stderr, "e")
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	again(t, w, 6*ms, Stdout, "never flushed")
	crash(w)

	w = mustWriter(t, s, 1, 1)
	if want := epoch.Add(5 * ms); !w.Since().Equal(want) {
		t.Errorf("read again from %v, want %v", w.Since(), want)
	}
	for i, text := range []string{"a", "a", "b", "c", "e", "never flushed", "new"} {
		again(t, w, time.Duration(i+1)*ms, Stdout, text)
	}
	closeLog(t, w)
	want := []string{"o:a", "o:a", "m:2 lines left out here: they never came", "e:e", "o:never flushed", "o:new"}
	if got := texts(t, s, 0); !reflect.DeepEqual(got, want) {
		t.Errorf("log %q\nwant %q", got, want)
	}
}

// TestDroppedLinesStayAway: lines that were dropped for the limit do not reappear when the
// engine sends them again.
func TestDroppedLinesStayAway(t *testing.T) {
	s := Open(t.TempDir(), 1)
	all := func(w *Writer) {
		for i := range 3000 {
			again(t, w, time.Duration(i), Stdout, fmt.Sprint(i, " ", strings.Repeat("x", 1000)))
		}
	}
	w := mustWriter(t, s, 1, 1)
	all(w)
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	crash(w)
	want := texts(t, s, 0)
	w = mustWriter(t, s, 1, 1)
	all(w)
	again(t, w, 4000, Stdout, "new")
	closeLog(t, w)
	if got := texts(t, s, 0); !reflect.DeepEqual(got, append(want, "o:new")) {
		t.Errorf("%d lines, want %d", len(got), len(want)+1)
	}
}

// diskSize returns the size of an attempt's files.
func diskSize(t interface{ Fatal(...any) }, s *Store) (n int64) {
	err := filepath.WalkDir(s.folder(1), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			info, e := d.Info()
			if e != nil {
				return e
			}
			n += info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Whatever is written, with crashes and restarts in between: the files never
// exceed the limit. The log is the output's start, one note with the right
// numbers, and the output's end. At least half of the limit is kept.
func TestLimitProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(dir)
		s := Open(dir, 1)
		w, err := s.Writer(1, 1)
		if err != nil {
			rt.Fatal(err)
		}
		var sizes []int // of all lines written, encoded
		total := 0
		put := func(n int) {
			text := append(fmt.Appendf(nil, "%d ", len(sizes)), make([]byte, n)...)
			text = text[:min(len(text), MaxLine)]
			if err := w.Write(epoch.Add(time.Duration(len(sizes)+1)), Stdout, text, false); err != nil {
				rt.Fatal(err)
			}
			sizes = append(sizes, len(w.scratch))
			total += len(w.scratch)
		}
		for range rapid.IntRange(1, 12).Draw(rt, "bursts") {
			n := rapid.IntRange(0, MaxLine).Draw(rt, "line")
			for range rapid.IntRange(1, 60).Draw(rt, "lines") {
				put(n)
				if got := diskSize(rt, s); got > s.Limits().Attempt {
					rt.Fatalf("%d bytes on disk, the limit is %d", got, s.Limits().Attempt)
				}
			}
			if rapid.Bool().Draw(rt, "restart") {
				if err := w.Flush(); err != nil {
					rt.Fatal(err)
				}
				crash(w)
				if w, err = s.Writer(1, 1); err != nil {
					rt.Fatal(err)
				}
			}
		}
		if err := w.Close(); err != nil {
			rt.Fatal(err)
		}
		if got := diskSize(rt, s); int64(total) > s.Limits().Attempt && got < s.Limits().Attempt/2 || int64(total) <= s.Limits().Attempt/2 && got != int64(total) {
			rt.Fatalf("%d of %d bytes are kept", got, total)
		}
		lines, err := s.Tail(1, 1, 0)
		if err != nil {
			rt.Fatal(err)
		}
		checkNumbers(rt, lines, sizes)
	})
}

// checkNumbers checks that the lines are numbered without gaps up to the last
// one written, except where a note accounts for the gap. sizes may be nil.
func checkNumbers(t interface{ Fatalf(string, ...any) }, lines []Line, sizes []int) {
	next, notes := 0, 0
	for _, l := range lines {
		var n, size, missing int
		if l.Stream == Note {
			if _, err := fmt.Sscanf(string(l.Text), "%d lines (%d bytes) left out here", &n, &size); err != nil {
				t.Fatalf("note %q: %v", l.Text, err)
			}
			for i := next; i < next+n && i < len(sizes); i++ {
				missing += sizes[i]
			}
			if sizes != nil && size != missing {
				t.Fatalf("the note says %d lines of %d bytes are missing, they have %d", n, size, missing)
			}
			next += n
			notes++
			continue
		}
		if _, err := fmt.Sscanf(string(l.Text), "%d ", &n); err != nil || n != next {
			t.Fatalf("line %d comes where %d should (%v)", n, next, err)
		}
		next++
	}
	if sizes != nil && (next != len(sizes) || notes > 1) {
		t.Fatalf("%d of %d lines, %d notes", next, len(sizes), notes)
	}
}

func BenchmarkWrite(b *testing.B) {
	s := Open(b.TempDir(), 0)
	w := mustWriter(b, s, 1, 1)
	text := []byte(strings.Repeat("x", 100))
	b.SetBytes(100)
	b.ReportAllocs()
	n := time.Duration(0)
	for b.Loop() {
		n++
		if err := w.Write(epoch.Add(n), Stdout, text, false); err != nil {
			b.Fatal(err)
		}
	}
	closeLog(b, w)
}
