package tasklog

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"carma/containers/lines"
)

// segment is one file of an attempt's output. The first one, the head, starts
// at 0 and is never deleted.
type segment struct {
	attempt int
	start   int64 // bytes of output before it, lost ones included
	line    int64 // the same in lines; notes do not count
}

func (g segment) head() bool { return g.start == 0 }

func (g segment) name() string {
	if g.head() {
		return fmt.Sprintf("%d.log", g.attempt)
	}
	return fmt.Sprintf("%d.%d.%d.log", g.attempt, g.start, g.line)
}

// parseName is the inverse of name.
func parseName(name string) (segment, bool) {
	base, ok := strings.CutSuffix(name, ".log")
	var n [3]int64
	parts := strings.Split(base, ".")
	if !ok || len(parts) != 1 && len(parts) != 3 {
		return segment{}, false
	}
	for i, p := range parts {
		v, err := strconv.ParseInt(p, 10, 64)
		if err != nil || v < 0 {
			return segment{}, false
		}
		n[i] = v
	}
	g := segment{attempt: int(n[0]), start: n[1], line: n[2]}
	return g, g.name() == name
}

// segments lists the files of an attempt in order. It is no error if there are none.
func (s *Store) segments(k key) ([]segment, error) {
	entries, err := os.ReadDir(s.folder(k.task))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var segs []segment
	for _, e := range entries {
		if seg, ok := parseName(e.Name()); ok && seg.attempt == k.attempt {
			segs = append(segs, seg)
		}
	}
	slices.SortFunc(segs, func(a, b segment) int { return cmp.Compare(a.start, b.start) })
	return segs, nil
}

// rotate starts the next segment.
func (w *Writer) rotate() bool {
	if !w.flush() {
		return false
	}
	next := segment{attempt: w.k.attempt, start: w.seg.start + max(w.out.bytes, 1), line: w.seg.line + w.out.lines}
	f, err := w.s.open(w.s.path(w.k, next), os.O_RDWR|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		w.fail(err)
		return false
	}
	if err := w.f.Close(); err != nil {
		w.fail(err) // the error is only reported
	}
	w.older.Add(w.size)
	w.f, w.seg, w.size, w.out, w.written, w.whole = f, next, 0, loss{}, 0, 0
	return true
}

// droppable reports whether the oldest segment behind the head may be deleted. A segment
// with the newest line on the disk may not be deleted. From that line's time a writer
// knows after a restart which lines are stored or recorded as lost. The segment that is
// being written may have no line yet.
func (s *Store) droppable(k key, segs []segment) bool {
	for i := len(segs) - 1; i > 1; i-- {
		if s.holdsLine(k, segs[i]) {
			return true
		}
	}
	return false
}

// holdsLine reports whether there is a complete line in a segment.
func (s *Store) holdsLine(k key, seg segment) bool {
	f, err := os.Open(s.path(k, seg))
	if err != nil {
		return false
	}
	defer f.Close()
	var r lines.Reader
	for r.Reset(f); ; {
		b, err := r.Next()
		if b == nil || err != nil {
			return false
		}
		if _, ok := parseLine(b); ok {
			return true
		}
	}
}

// dropOldest deletes segments, never the head or the newest, until the
// attempt's limit leaves room for n more bytes.
func (w *Writer) dropOldest(n int64) bool {
	limit := w.s.Limits().Attempt
	if w.older.Load()+w.size+n <= limit {
		return true
	}
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	for w.older.Load()+w.size+n > limit {
		segs, err := w.s.segments(w.k)
		if err != nil {
			w.fail(err)
			return false
		}
		if !w.s.droppable(w.k, segs) {
			return true
		}
		if err := w.s.dropSegment(w.k, segs[1], &full{limit: limit}); err != nil {
			w.fail(err)
			return false
		}
	}
	return true
}

// look checks whether somebody has moved or deleted the file that is being written. If
// so, writing continues in a new file.
func (w *Writer) look() {
	if w.f == nil {
		w.opened()
		return
	}
	if _, err := os.Stat(w.s.path(w.k, w.seg)); !errors.Is(err, fs.ErrNotExist) {
		return
	}
	next := segment{attempt: w.k.attempt, start: w.seg.start + w.out.bytes, line: w.seg.line + w.out.lines}
	err := os.MkdirAll(w.s.folder(w.k.task), 0o700)
	if err == nil {
		var f file
		if f, err = w.s.open(w.s.path(w.k, next), os.O_RDWR|os.O_CREATE|os.O_TRUNC); err == nil {
			_ = w.f.Close()
			w.buf = w.buf[:0]
			w.f, w.seg, w.size, w.out, w.written, w.whole = f, next, 0, loss{}, 0, 0
			w.older.Store(0)
			w.s.becauseOf(w.k, "the folder of the output was moved or deleted")
			w.s.recount(w.k.task)
			w.fail(fmt.Errorf("%s was moved or deleted while it was written", w.s.folder(w.k.task)))
			w.failing = false
			return
		}
	}
	w.fail(err)
}
