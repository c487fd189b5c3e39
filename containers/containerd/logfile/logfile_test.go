package logfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"carma/containers"
)

func create(t testing.TB, size int64) *Writer {
	t.Helper()
	w, err := Create(t.TempDir(), 0)
	if err != nil {
		t.Fatal(err)
	}
	w.size = size
	t.Cleanup(func() { _ = w.Close() })
	return w
}

// readAll reads all entries there are.
func readAll(t testing.TB, r *Reader) (out []Entry) {
	t.Helper()
	for {
		e, err := r.Next()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		e.Text = bytes.Clone(e.Text)
		out = append(out, e)
	}
}

// lines joins the pieces of a stream's lines.
func lines(t testing.TB, es []Entry, stream uint8) (out []string) {
	t.Helper()
	line, open := "", false
	for i, e := range es {
		if i > 0 && !e.At.After(es[i-1].At) {
			t.Fatalf("entry %d: time %v is not after %v", i, e.At, es[i-1].At)
		}
		if e.Stream != stream {
			continue
		}
		line, open = line+string(e.Text), e.Partial
		if !open {
			out, line = append(out, line), ""
		}
	}
	if open {
		t.Errorf("the last line is not ended: %.40q", line)
	}
	return out
}

func TestCopy(t *testing.T) {
	long := strings.Repeat("0123456789", 10_000)
	for name, tc := range map[string]struct {
		in   string
		want []string
	}{
		"nothing":         {"", nil},
		"lines":           {"a\n\nb c\n", []string{"a", "", "b c"}},
		"no newline":      {"a\nb", []string{"a", "b"}},
		"long":            {long + "\nx\n", []string{long, "x"}},
		"long, no end":    {long, []string{long}},
		"a piece":         {long[:Piece] + "\nx\n", []string{long[:Piece], "x"}},
		"a piece, no end": {long[:Piece], []string{long[:Piece]}},
		"two pieces":      {long[:2*Piece] + "\n", []string{long[:2*Piece]}},
		"bytes":           {"\xff\x00\n", []string{"\xff\x00"}},
	} {
		for _, most := range []int{1, 7, Piece, 1 << 20} {
			w := create(t, FileSize)
			if err := w.Copy(2, &chunks{strings.NewReader(tc.in), most}); err != nil {
				t.Fatal(err)
			}
			r := NewReader(w.dir, time.Time{})
			got := lines(t, readAll(t, r), 2)
			r.Close()
			if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", tc.want) {
				t.Errorf("%s by %d bytes: %.80q, want %.80q", name, most, got, tc.want)
			}
		}
	}
}

// chunks is a reader that returns at most n bytes per call.
type chunks struct {
	r io.Reader
	n int
}

func (c *chunks) Read(p []byte) (int, error) { return c.r.Read(p[:min(len(p), c.n)]) }

// TestResume reads on from each entry: all later entries are read exactly once and unchanged.
func TestResume(t *testing.T) {
	w := create(t, 3000)
	if err := w.Copy(1, &chunks{strings.NewReader(strings.Repeat("some line\n", 200)), 100}); err != nil {
		t.Fatal(err)
	}
	all := readAll(t, NewReader(w.dir, time.Time{}))
	if len(all) != 200 {
		t.Fatalf("%d entries, want 200", len(all))
	}
	for i := range all {
		rest := readAll(t, NewReader(w.dir, all[i].At))
		if len(rest) != len(all)-i-1 || len(rest) > 0 && !rest[0].At.Equal(all[i+1].At) {
			t.Fatalf("after entry %d: %d entries, want %d", i, len(rest), len(all)-i-1)
		}
	}
}

// TestFollow reads while both streams are written, over many files.
func TestFollow(t *testing.T) {
	const n = 5000
	w := create(t, 200_000)
	var writers sync.WaitGroup
	for stream := uint8(1); stream <= 2; stream++ {
		writers.Go(func() {
			var in strings.Builder
			for i := range n {
				fmt.Fprintf(&in, "%d %d\n", stream, i)
			}
			if err := w.Copy(stream, &chunks{strings.NewReader(in.String()), 1 + rand.IntN(300)}); err != nil {
				t.Error(err)
			}
		})
	}
	ended := make(chan struct{})
	go func() { writers.Wait(); close(ended) }()
	r := NewReader(w.dir, time.Time{})
	var got []Entry
	for over := false; !over; {
		select {
		case <-ended:
			over = true
		default:
		}
		got = append(got, readAll(t, r)...)
	}
	for stream := uint8(1); stream <= 2; stream++ {
		ls := lines(t, got, stream)
		if len(ls) != n {
			t.Fatalf("stream %d: %d lines, want %d", stream, len(ls), n)
		}
		for i, l := range ls {
			if want := fmt.Sprintf("%d %d", stream, i); l != want {
				t.Fatalf("stream %d: line %q, want %q", stream, l, want)
			}
		}
	}
}

func TestBounded(t *testing.T) {
	w := create(t, 1000)
	for i := range 1000 {
		if err := w.Copy(1, strings.NewReader(fmt.Sprintf("line %d\n", i))); err != nil {
			t.Fatal(err)
		}
	}
	ns, err := numbers(w.dir)
	if err != nil || len(ns) != Files {
		t.Fatalf("files %v, %v, want %d", ns, err, Files)
	}
	all := readAll(t, NewReader(w.dir, time.Time{}))
	ls := lines(t, all, 1)
	if last := ls[len(ls)-1]; last != "line 999" || len(ls) < 60 {
		t.Errorf("%d lines up to %q", len(ls), last)
	}
	if got := gone(t, all); got != 1000-len(ls) {
		t.Errorf("%d lines are told to be missing of 1000, but %d are there", got, len(ls))
	}
}

// gone counts the entries that a log reports as missing.
func gone(t testing.TB, es []Entry) (n int) {
	t.Helper()
	seen := 0
	for _, e := range es {
		if e.Stream != missing {
			seen++
			continue
		}
		l, ok := containers.ParseMissing(e.Text)
		if !ok || l.Before <= int64(seen+n) {
			t.Fatalf("after %d entries, %d missing: %q", seen, n, e.Text)
		}
		n = int(l.Before) - seen
	}
	return n
}

// TestMissed: a reader that continues after files were deleted learns how many entries it
// missed. It learns it once, even if it stops after that.
func TestMissed(t *testing.T) {
	w := create(t, 1000)
	write := func(from, to int) {
		for i := from; i < to; i++ {
			if err := w.Copy(1, strings.NewReader(fmt.Sprintf("line %d\n", i))); err != nil {
				t.Fatal(err)
			}
		}
	}
	write(0, 10)
	last := readAll(t, NewReader(w.dir, time.Time{}))[9]
	write(10, 1000)
	rest := readAll(t, NewReader(w.dir, last.At))
	first := rest[0]
	l, ok := containers.ParseMissing(first.Text)
	if first.Stream != missing || !ok || string(rest[1].Text) != fmt.Sprintf("line %d", l.Before) {
		t.Fatalf("first %q of stream %d, then %q", first.Text, first.Stream, rest[1].Text)
	}
	if !first.At.After(last.At) || !rest[1].At.After(first.At) {
		t.Errorf("times %v, %v, %v", last.At, first.At, rest[1].At)
	}
	again := readAll(t, NewReader(w.dir, first.At))
	if len(again) != len(rest)-1 || gone(t, again) != 0 {
		t.Errorf("read on after the mark: %d entries, want %d", len(again), len(rest)-1)
	}
	// A reader that reads on in time misses nothing.
	r := NewReader(w.dir, again[len(again)-1].At)
	all := readAll(t, r)
	for i := 1000; i < 2000; i++ {
		write(i, i+1)
		all = append(all, readAll(t, r)...)
	}
	if len(all) != 1000 || gone(t, all) != 0 {
		t.Errorf("%d entries, %d missing, want 1000 and none", len(all), gone(t, all))
	}
}

// TestKept: the log keeps at least the amount asked for.
func TestKept(t *testing.T) {
	w, err := Create(t.TempDir(), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	if err := w.Copy(1, strings.NewReader(strings.Repeat("0123456789abcde\n", 200_000))); err != nil {
		t.Fatal(err)
	}
	all := readAll(t, NewReader(w.dir, time.Time{}))
	kept := len(lines(t, all, 1))
	if kept < 1<<20/32 || kept > 2<<20/32 || kept+gone(t, all) != 200_000 {
		t.Errorf("%d lines kept, %d missing", kept, gone(t, all))
	}
}

// TestOlderFiles: files of older writers, which have no counts, are read.
func TestOlderFiles(t *testing.T) {
	dir := t.TempDir()
	for n := 2; n < 4; n++ {
		e := appendEntry(nil, Entry{At: time.Unix(int64(n), 0), Stream: 1, Text: fmt.Append(nil, "file ", n)})
		if err := os.WriteFile(filePath(dir, n), e, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := lines(t, readAll(t, NewReader(dir, time.Time{})), 1); fmt.Sprint(got) != "[file 2 file 3]" {
		t.Errorf("%q", got)
	}
}

// TestRotatedAtTheEnd: the reader is at the end of a file, more is written, then
// a new file begins. The reader gets all of it.
func TestRotatedAtTheEnd(t *testing.T) {
	w := create(t, FileSize)
	write := func(line string) {
		if err := w.Copy(1, strings.NewReader(line+"\n")); err != nil {
			t.Fatal(err)
		}
	}
	write("a")
	r := NewReader(w.dir, time.Time{})
	r.atEnd = func() {
		r.atEnd = nil
		write("b")
		w.size = 1
		write("c")
	}
	if got := lines(t, readAll(t, r), 1); fmt.Sprint(got) != "[a b c]" {
		t.Errorf("%q", got)
	}
}

func TestClockSetBack(t *testing.T) {
	w := create(t, FileSize)
	at := time.Unix(1000, 0)
	w.now = func() time.Time { at = at.Add(-time.Second); return at }
	if err := w.Copy(1, strings.NewReader("a\nb\nc\n")); err != nil {
		t.Fatal(err)
	}
	if got := lines(t, readAll(t, NewReader(w.dir, time.Time{})), 1); len(got) != 3 {
		t.Errorf("%q", got)
	}
}

func TestEnded(t *testing.T) {
	dir := t.TempDir()
	check := func(when string, want bool) {
		t.Helper()
		if got, err := Ended(dir); err != nil || got != want {
			t.Errorf("%s: Ended = %v, %v, want %v", when, got, err, want)
		}
	}
	check("before", true)
	w, err := Create(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	check("while it writes", false)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	check("after", true)
}

// TestWriteFails: after a failed write the log begins a new file. It keeps the
// old output and stores the new.
func TestWriteFails(t *testing.T) {
	w := create(t, FileSize)
	write := func(line string) error { return w.Copy(1, strings.NewReader(line+"\n")) }
	if err := write("one"); err != nil {
		t.Fatal(err)
	}
	r := NewReader(w.dir, time.Time{})
	got := readAll(t, r)
	for range 5 { // as on a full disk
		_ = w.file.Close()
		if err := write("lost"); err == nil {
			t.Fatal("no error")
		}
		if err := w.next(); err != nil {
			t.Fatal(err)
		}
	}
	if err := write("two"); err != nil {
		t.Fatal(err)
	}
	got = append(got, readAll(t, r)...)
	if ls := lines(t, got, 1); fmt.Sprint(ls) != "[one two]" || gone(t, got) != 5 {
		t.Errorf("%q, %d missing, want 5", ls, gone(t, got))
	}
	_ = w.file.Close()
	if err := write("lost"); err == nil {
		t.Fatal("no error")
	}
	if err := w.Close(); err != nil { // now there is room
		t.Fatal(err)
	}
	if got = append(got, readAll(t, r)...); gone(t, got) != 6 {
		t.Errorf("%d missing, want 6", gone(t, got))
	}
}

func TestDamaged(t *testing.T) {
	w := create(t, FileSize)
	if err := w.Copy(1, strings.NewReader("good\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := w.file.WriteString("something else altogether"); err != nil {
		t.Fatal(err)
	}
	r := NewReader(w.dir, time.Time{})
	if e, err := r.Next(); err != nil || string(e.Text) != "good" {
		t.Errorf("%q, %v", e.Text, err)
	}
	if _, err := r.Next(); !errors.Is(err, ErrDamaged) {
		t.Errorf("%v, want ErrDamaged", err)
	}
}

func FuzzReader(f *testing.F) {
	f.Add(appendEntry(nil, Entry{At: time.Unix(1, 2), Stream: 1, Text: []byte("text")}))
	f.Add([]byte("L"))
	f.Fuzz(func(t *testing.T, file []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filePath(dir, 1), file, 0o600); err != nil {
			t.Fatal(err)
		}
		r := NewReader(dir, time.Time{})
		defer r.Close()
		for range len(file) + 1 {
			e, err := r.Next()
			if err != nil {
				return
			}
			if len(e.Text) > Piece || e.Stream < 1 || e.Stream > missing {
				t.Fatalf("%+v", e)
			}
		}
		t.Error("more entries than bytes")
	})
}
