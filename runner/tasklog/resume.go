package tasklog

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"time"

	"carma/containers/lines"
)

// Last returns the time of the newest line, or zero if there is none.
func (w *Writer) Last() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last
}

// Since returns the time of the newest line that is stored or recorded as lost. After a
// restart, read the container's output again from that time on, or all output if the time
// is zero. Write ignores lines that are not later, so that no line is lost or stored
// twice.
func (w *Writer) Since() time.Time { return w.Last() }

// opened reports whether the log can be written. If it is not open, it tries to
// open it.
func (w *Writer) opened() bool {
	if w.f != nil {
		return true
	}
	if err := w.reopen(); err != nil {
		w.f = nil
		w.fail(err)
		return false
	}
	// If the log could not be opened at first, all lines since the first were counted as
	// lost. Lines that are in the log are not lost.
	w.lost.lines = max(w.lost.lines-w.seg.line-w.out.lines, 0)
	w.lost.bytes = max(w.lost.bytes-w.seg.start-w.out.bytes, 0)
	return true
}

// reopen opens the attempt's log, or makes a new one. It cuts off an incomplete
// line at the end and measures the rest.
func (w *Writer) reopen() error {
	if err := os.MkdirAll(w.s.folder(w.k.task), 0o700); err != nil {
		return err
	}
	segs, err := w.s.segments(w.k)
	if err != nil {
		return err
	}
	if len(segs) == 0 {
		segs = []segment{{attempt: w.k.attempt}}
	}
	w.seg = segs[len(segs)-1]
	if w.f, err = w.s.open(w.s.path(w.k, w.seg), os.O_RDWR|os.O_CREATE); err != nil {
		return err
	}
	before := w.size
	if err = w.measure(segs); err == nil {
		err = w.f.Truncate(w.size)
	}
	if err != nil {
		w.f.Close()
		w.size = before
		return err
	}
	w.written, w.whole = w.size, w.size
	w.s.recount(w.k.task)
	return nil
}

// measure sets the sizes, the position and the last time from the files.
func (w *Writer) measure(segs []segment) error {
	total := int64(0)
	for _, seg := range segs[:len(segs)-1] {
		info, err := os.Stat(w.s.path(w.k, seg))
		if err == nil {
			total += info.Size()
		} else if !errors.Is(err, fs.ErrNotExist) { // dropped a moment ago
			return err
		}
	}
	w.older.Store(total)
	w.size, w.out = 0, loss{}
	for i := len(segs) - 1; i >= 0 && (w.last.IsZero() || i == len(segs)-1); i-- {
		var out loss
		err := w.s.scan(w.k, segs[i], func(l Line, ok bool, raw []byte, end int64) {
			out.pass(l, ok, raw)
			if ok && i == len(segs)-1 {
				w.size, w.out = end, out
			}
			if ok && l.At.After(w.last) {
				w.last = l.At
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// scan calls fn with each complete line of a segment, its encoded form with newline, and
// the position of its end.
func (s *Store) scan(k key, seg segment, fn func(l Line, ok bool, raw []byte, end int64)) error {
	f, err := os.Open(s.path(k, seg))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	return eachLine(f, fn)
}

func eachLine(f io.ReaderAt, fn func(l Line, ok bool, raw []byte, end int64)) error {
	var r lines.Reader
	r.Reset(f)
	for {
		b, err := r.Next()
		if b == nil || err != nil {
			return err
		}
		l, ok := parseLine(b)
		fn(l, ok, b[:len(b)+1], r.Offset())
	}
}
