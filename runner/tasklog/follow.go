package tasklog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// Options select what Follow reads; the zero value is all there is now.
type Options struct {
	// Tail is how many lines, counted from the end, come first. 0: all that
	// are kept; negative: none. A line in pieces counts once per piece.
	Tail int
	// Since leaves out lines before this instant; zero: none.
	Since time.Time
	// Follow goes on with what is written, until the writer is closed.
	Follow bool
}

// Follow calls fn with the lines of an attempt's log in order. The line's text
// is only valid during the call. Where output is missing, one line with stream
// [Note] says how much. It returns nil at the end: of what there is now, or
// (with Follow, while the log is being written) when the attempt is over;
// otherwise the error of fn or of ctx, or [ErrNotFound]. A slow fn holds up
// nobody; if the limit overtakes it, it gets a note about what it missed.
func (s *Store) Follow(ctx context.Context, task int64, attempt int, o Options, fn func(Line) error) error {
	f := follower{s: s, k: key{task, attempt}, since: o.Since, fn: fn}
	defer f.close()
	w := s.writer(f.k)
	if w != nil {
		w.progress() // all there is, is now in the files
	}
	if err := f.begin(o.Tail); err != nil {
		return fmt.Errorf("log of task %d, attempt %d: %w", task, attempt, err)
	}
	for {
		// What is asked before reading holds after it: a file that is not
		// the newest now is complete now.
		p, err := f.progress(w)
		if err != nil {
			return err
		}
		if err := f.drain(ctx); err != nil {
			return err
		}
		switch {
		case f.seg.start < p.newest:
			if ok, err := f.advance(); !ok || err != nil {
				return err // not ok: the log was removed
			}
			continue
		case !o.Follow || p.ended:
			return nil
		}
		select {
		case <-p.more:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Tail returns the newest n lines of an attempt's log, all if n is 0.
func (s *Store) Tail(task int64, attempt int, n int) ([]Line, error) {
	var lines []Line
	err := s.Follow(context.Background(), task, attempt, Options{Tail: n}, func(l Line) error {
		l.Text = bytes.Clone(l.Text)
		lines = append(lines, l)
		return nil
	})
	return lines, err
}

// follower is a place in an attempt's output and the way on from there.
type follower struct {
	s     *Store
	k     key
	since time.Time
	fn    func(Line) error

	seg  segment
	file *os.File
	r    lineReader
	line int64 // lines before the place
	skip int64 // lines still to be left out
	gap  loss  // what is missing before the next line
}

func (f *follower) close() {
	if f.file != nil {
		f.file.Close()
	}
}

func (f *follower) progress(w *Writer) (progress, error) {
	if w != nil {
		return w.progress(), nil
	}
	segs, err := f.s.segments(f.k)
	if len(segs) == 0 || err != nil {
		return progress{ended: true}, err
	}
	return progress{newest: segs[len(segs)-1].start, ended: true}, nil
}

// begin opens the segment in which the newest tail lines begin.
func (f *follower) begin(tail int) error {
	segs, err := f.s.segments(f.k)
	if err != nil {
		return err
	}
	if len(segs) == 0 {
		return ErrNotFound
	}
	from, skip := 0, int64(0)
	if tail != 0 {
		left := int64(max(tail, 0))
		for from = len(segs) - 1; ; from-- {
			n, err := f.count(segs[from])
			if err != nil {
				return err
			}
			if n >= left {
				skip = n - left
				break
			}
			left -= n
			if from == 0 {
				break
			}
		}
	}
	ok, err := f.openFrom(segs[from].start, segs[from].line)
	if !ok && err == nil {
		err = ErrNotFound
	}
	if f.seg.start == segs[from].start {
		f.skip = skip
	}
	return err
}

func (f *follower) count(seg segment) (n int64, err error) {
	file, err := os.Open(f.s.path(f.k, seg))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer file.Close()
	r := lineReader{r: file}
	for {
		b, err := r.next()
		if b == nil || err != nil {
			return n, err
		}
		n++
	}
}

// advance goes on to the next segment that is still there.
func (f *follower) advance() (bool, error) {
	return f.openFrom(f.seg.start+f.r.off, f.line)
}

// openFrom opens the first segment that starts at or after a place in the
// output; false if there is none.
func (f *follower) openFrom(start, line int64) (bool, error) {
	for {
		segs, err := f.s.segments(f.k)
		if err != nil {
			return false, err
		}
		for len(segs) > 0 && segs[0].start < start {
			segs = segs[1:]
		}
		if len(segs) == 0 {
			return false, nil
		}
		file, err := os.Open(f.s.path(f.k, segs[0]))
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted since the folder was read
		}
		if err != nil {
			return false, err
		}
		f.close()
		f.seg, f.file = segs[0], file
		f.r = lineReader{r: file, buf: f.r.buf[:0]}
		f.gap.bytes += f.seg.start - start
		f.gap.lines += f.seg.line - line
		f.line = f.seg.line
		return true, nil
	}
}

// drain passes on the lines up to the end of the segment.
func (f *follower) drain(ctx context.Context) error {
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		b, err := f.r.next()
		if err != nil {
			return fmt.Errorf("log of task %d, attempt %d: %w", f.k.task, f.k.attempt, err)
		}
		if b == nil {
			return nil
		}
		f.line++
		if f.skip > 0 {
			f.skip--
			continue
		}
		l, ok := parseLine(b)
		if !ok || l.At.Before(f.since) {
			continue
		}
		if f.gap.bytes > 0 {
			text := fmt.Appendf(nil, "%d lines (%d bytes) left out here: a log is limited to %d bytes", f.gap.lines, f.gap.bytes, f.s.limit)
			f.gap = loss{}
			if err := f.fn(Line{At: l.At, Stream: Note, Text: text}); err != nil {
				return err
			}
		}
		if err := f.fn(l); err != nil {
			return err
		}
	}
}
