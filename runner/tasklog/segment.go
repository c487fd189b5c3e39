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
)

// segment is one file of an attempt's output and where in the output it
// starts. The first one, the head, starts at 0 and is never deleted.
type segment struct {
	attempt int
	start   int64 // bytes before it
	line    int64 // lines before it
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

// segments lists the files of an attempt in order; none is no error.
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

type older struct {
	segment
	size int64
}

// rotate starts the next segment.
func (w *Writer) rotate() bool {
	if !w.flush() {
		return false
	}
	next := segment{attempt: w.k.attempt, start: w.seg.start + w.size, line: w.seg.line + w.lines}
	f, err := w.s.open(w.s.path(w.k, next), os.O_RDWR|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		w.fail(err)
		return false
	}
	if err := w.f.Close(); err != nil {
		w.fail(err) // for the report; there is nothing to be done
	}
	w.older = append(w.older, older{w.seg, w.size})
	w.f, w.seg, w.size, w.lines, w.written, w.whole = f, next, 0, 0, 0, 0
	return true
}

// dropOldest deletes segments, never the head or the newest, until there is
// room for n more bytes.
func (w *Writer) dropOldest(n int64) bool {
	for w.total+n > w.s.limit && len(w.older) > 1 {
		o := w.older[1]
		if err := os.Remove(w.s.path(w.k, o.segment)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			w.fail(err)
			return false
		}
		w.total -= o.size
		w.older = append(w.older[:1], w.older[2:]...)
	}
	return true
}
