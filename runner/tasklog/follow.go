package tasklog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"carma/containers/lines"
)

// Options select the lines that Follow reads; the zero value selects all output up to now.
type Options struct {
	// Tail is the number of newest lines that come first. 0 means all lines that are
	// kept, a negative number none. Each piece of a line counts as one.
	Tail int
	// Since leaves out lines before this instant, unless it is zero.
	Since time.Time
	// Follow waits for new lines, until the writer is closed.
	Follow bool
}

// Follow calls fn with the lines of an attempt's log in order. The line's text is only
// valid during the call. Where output is missing, one line with stream [Note] contains
// the amount. It returns nil at the end of the present output or, with Follow while the
// log is being written, when the attempt is over. Else it returns the error of fn or of
// ctx, or [ErrNotFound]. A slow fn delays no writer. If output is deleted before fn gets
// it, a note says so.
func (s *Store) Follow(ctx context.Context, task int64, attempt int, o Options, fn func(Line) error) error {
	f := follower{s: s, k: key{task, attempt}, since: o.Since, fn: fn}
	defer f.close()
	w := s.writer(f.k)
	if w != nil {
		w.progress() // all output up to now is in the files
	}
	if err := f.begin(o.Tail); err != nil {
		return fmt.Errorf("log of task %d, attempt %d: %w", task, attempt, err)
	}
	for {
		// progress is called before reading, because a file that is not the newest at
		// that time is complete.
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
				return err // if ok is false, the log was removed
			}
			continue
		case !o.Follow || p.ended:
			return f.note()
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

// follower reads an attempt's output from a position on.
type follower struct {
	s     *Store
	k     key
	since time.Time
	fn    func(Line) error

	seg  segment
	file *os.File
	r    lines.Reader
	pos  loss // output before the position
	at   time.Time
	skip int64 // lines still to be left out
	gap  loss  // missing output before the next line
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
	if from > 0 || skip > 0 {
		f.pos = loss{lines: segs[from].line, bytes: segs[from].start}
	}
	ok, err := f.openFrom(segs[from].start)
	if !ok && err == nil {
		err = ErrNotFound
	}
	if f.seg.start == segs[from].start {
		f.skip = skip
	}
	return err
}

// count returns the number of lines of a segment.
func (f *follower) count(seg segment) (n int64, err error) {
	err = f.s.scan(f.k, seg, func(Line, bool, []byte, int64) { n++ })
	return n, err
}

// advance moves to the next segment that still exists.
func (f *follower) advance() (bool, error) {
	return f.openFrom(f.seg.start + 1)
}

// openFrom opens the first segment that starts at start or after it, and returns false if
// there is none. Output between this segment and the last line read is missing.
func (f *follower) openFrom(start int64) (bool, error) {
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
		f.r.Reset(file)
		// The difference can be negative in files of older versions, which counted notes.
		f.gap.lines += max(f.seg.line-f.pos.lines, 0)
		f.gap.bytes += max(f.seg.start-f.pos.bytes, 0)
		f.pos = loss{lines: f.seg.line, bytes: f.seg.start}
		return true, nil
	}
}

// drain passes the lines up to the end of the segment to fn.
func (f *follower) drain(ctx context.Context) error {
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		b, err := f.r.Next()
		if err != nil {
			return fmt.Errorf("log of task %d, attempt %d: %w", f.k.task, f.k.attempt, err)
		}
		if b == nil {
			return nil
		}
		l, ok := parseLine(b)
		f.pos.pass(l, ok, b)
		f.pos.bytes += newline(l, ok)
		if f.skip > 0 {
			f.skip--
			continue
		}
		if !ok || l.At.Before(f.since) {
			continue
		}
		f.at = l.At
		if err := f.note(); err != nil {
			return err
		}
		if err := f.fn(l); err != nil {
			return err
		}
	}
}

// newline returns the length of a line's end, which pass does not count.
func newline(l Line, ok bool) int64 {
	if ok && l.Stream == Note {
		return 0
	}
	return 1
}

// note passes fn a note about the output that is missing before the position.
func (f *follower) note() error {
	if f.gap.lines == 0 {
		return nil
	}
	text := f.gap.note(f.s.why(f.k))
	f.gap = loss{}
	return f.fn(Line{At: f.at, Stream: Note, Text: []byte(text)})
}
