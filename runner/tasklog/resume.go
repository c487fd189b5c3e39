package tasklog

import (
	"errors"
	"hash/maphash"
	"io"
	"io/fs"
	"os"
	"time"
)

// Overlap is how far before the newest line a caller reads again after a
// restart: runtimes do not order the lines of two streams exactly by time.
const Overlap = time.Second

// resume knows the lines at the end of a reopened log, so that those that
// come again can be told from new ones, even with equal times.
type resume struct {
	from, until time.Time
	have        map[uint64]int // lines from from on, by hash
}

var seed = maphash.MakeSeed()

// known reports whether a line was in the log when it was reopened. Once all
// of them have come again, or time has passed, everything is new.
func (r *resume) known(w *Writer, at time.Time, encoded []byte) bool {
	if at.Before(r.from) {
		return true
	}
	h := maphash.Bytes(seed, encoded)
	n := r.have[h]
	switch {
	case n > 1:
		r.have[h]--
	case n == 1:
		delete(r.have, h)
	}
	if len(r.have) == 0 || at.After(r.until) {
		w.resume = nil
	}
	return n > 0
}

// Last returns the time of the newest line of output; zero without any.
func (w *Writer) Last() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last
}

// Since returns from when on, after a restart, the output must be read again
// from the container and written: zero for all of it. Lines of that time that
// the log already has are ignored, each as often as it has it, so that
// nothing is lost and nothing there twice.
func (w *Writer) Since() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.resume == nil {
		return w.last
	}
	return w.resume.from
}

// reopen finds out what the attempt's log holds, cuts off what is not a
// complete line at its end, and opens it; or makes a new one.
func (w *Writer) reopen() error {
	if err := os.MkdirAll(w.s.folder(w.k.task), 0o700); err != nil {
		return err
	}
	segs, err := w.s.segments(w.k)
	if err != nil {
		return err
	}
	if len(segs) == 0 || !segs[0].head() {
		segs = append([]segment{{attempt: w.k.attempt}}, segs...)
	}
	w.seg = segs[len(segs)-1]
	if w.f, err = w.s.open(w.s.path(w.k, w.seg), os.O_RDWR|os.O_CREATE); err != nil {
		return err
	}
	if err = w.measure(segs); err == nil {
		err = w.f.Truncate(w.size)
	}
	if err == nil {
		err = w.remember(segs)
	}
	if err != nil {
		w.f.Close()
		return err
	}
	w.written, w.whole = w.size, w.size
	return nil
}

// measure sets the sizes and the last time.
func (w *Writer) measure(segs []segment) error {
	for i, seg := range segs[:len(segs)-1] {
		info, err := os.Stat(w.s.path(w.k, seg))
		size := int64(0)
		switch {
		case err == nil:
			size = info.Size()
		case i > 0 || !errors.Is(err, fs.ErrNotExist): // a lost head cannot be repaired
			return err
		}
		w.older = append(w.older, older{seg, size})
		w.total += size
	}
	for i := len(segs) - 1; i >= 0 && w.last.IsZero(); i-- {
		lines := int64(0)
		err := w.scan(segs[i], func(l Line, ok bool, raw []byte, end int64) {
			lines++
			if ok && i == len(segs)-1 {
				w.size, w.lines = end, lines
			}
			if ok && l.Stream != Note && l.At.After(w.last) {
				w.last = l.At
			}
		})
		if err != nil {
			return err
		}
	}
	w.total += w.size
	return nil
}

// remember collects the lines that may come again.
func (w *Writer) remember(segs []segment) error {
	if w.last.IsZero() {
		return nil
	}
	r := &resume{from: w.last.Add(-Overlap), until: w.last.Add(Overlap), have: map[uint64]int{}}
	for i := len(segs) - 1; i >= 0; i-- {
		var first time.Time
		err := w.scan(segs[i], func(l Line, ok bool, raw []byte, _ int64) {
			if !ok || l.Stream == Note {
				return
			}
			if first.IsZero() {
				first = l.At
			}
			if !l.At.Before(r.from) {
				r.have[maphash.Bytes(seed, raw)]++
			}
		})
		if err != nil {
			return err
		}
		if !first.IsZero() && first.Before(r.from) {
			break
		}
		// Lines that the limit has dropped must not come back either.
		if i == 1 && len(w.older) > 0 && segs[1].start > w.older[0].size {
			if !first.IsZero() {
				r.from = first
			}
			break
		}
	}
	w.resume = r
	return nil
}

// scan calls fn with each complete line of a segment, its encoded form with
// newline, and where it ends.
func (w *Writer) scan(seg segment, fn func(l Line, ok bool, raw []byte, end int64)) error {
	f, err := os.Open(w.s.path(w.k, seg))
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
	r := lineReader{r: f}
	for {
		b, err := r.next()
		if b == nil || err != nil {
			return err
		}
		l, ok := parseLine(b)
		fn(l, ok, r.buf[r.start-len(b)-1:r.start], r.off)
	}
}
