package containerstest

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"carma/containers"
)

// entry is a line, or a piece of one, in a fake container's log.
type entry struct {
	at      time.Time
	stream  containers.Stream
	text    []byte
	partial bool
}

// maxPiece is the longest piece of a line that is logged.
const maxPiece = 64 << 10

var errEnded = errors.New("the container has ended")

// lineWriter cuts a script's output into log entries.
type lineWriter struct {
	c      *fakeContainer
	stream containers.Stream
	buf    []byte
	open   bool // a piece of the line in buf was logged
}

// Write logs the complete lines in p and keeps the rest. After the container's
// end it fails.
func (w *lineWriter) Write(p []byte) (int, error) {
	w.c.engine.mu.Lock()
	defer w.c.engine.mu.Unlock()
	if w.c.state != containers.StateRunning {
		return 0, errEnded
	}
	w.buf = append(w.buf, p...)
	for {
		line, rest, ok := bytes.Cut(w.buf, []byte("\n"))
		switch {
		case len(line) > maxPiece:
			w.log(w.buf[:maxPiece], true)
			w.buf = w.buf[maxPiece:]
			continue
		case ok:
			w.log(line, false)
			w.buf = rest
			continue
		}
		w.c.change()
		return len(p), nil
	}
}

// finish logs a last line without a newline.
func (w *lineWriter) finish() {
	if len(w.buf) > 0 || w.open {
		w.log(w.buf, false)
		w.buf = nil
	}
}

func (w *lineWriter) log(text []byte, partial bool) {
	w.open = partial
	w.c.log = append(w.c.log, entry{w.c.engine.now(), w.stream, bytes.Clone(text), partial})
	w.c.bytes += int64(len(text))
	w.c.rotate()
}

// rotate deletes the older half of a log that is twice as large as necessary.
func (c *fakeContainer) rotate() {
	keep := c.spec.LogBytes
	if keep == 0 || c.bytes < 2*keep {
		return
	}
	n := 0
	for ; c.bytes > keep; n++ {
		c.bytes -= int64(len(c.log[n].text))
	}
	c.dropped += n
	c.log = slices.Clone(c.log[n:])
}

// missed returns the entry that replaces the deleted ones. Its time may equal the time of
// the newest deleted one.
func (c *fakeContainer) missed() entry {
	text := containers.Lines{Before: int64(c.dropped)}.Text()
	return entry{c.log[0].at.Add(-1), containers.Missing, text, false}
}

// Logs sends the log's entries after since. It calls the sink without locks, so that the
// sink may use the fake.
func (f *Fake) Logs(ctx context.Context, id string, since time.Time, follow bool, sink containers.LogSink) error {
	if _, err := f.call(ctx, OpLogs); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	c, err := f.get("read logs of", id)
	if err != nil {
		return err
	}
	for next := 0; ; { // counted from the first that was printed
		over := c.state != containers.StateRunning
		for ; next < c.dropped+len(c.log); next++ {
			if next < c.dropped {
				next = c.dropped - 1
				f.send(c.missed(), since, sink)
				continue
			}
			f.send(c.log[next-c.dropped], since, sink)
			if isClosed(f.down) {
				return unavailable(OpLogs)
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
		if over || !follow || c.removed {
			return nil
		}
		if next == c.dropped+len(c.log) && c.state == containers.StateRunning {
			if err := f.sleep(ctx, OpLogs, c); err != nil {
				return err
			}
		}
	}
}

// send passes an entry to the sink if it is after since. It unlocks the mutex meanwhile.
func (f *Fake) send(e entry, since time.Time, sink containers.LogSink) {
	if !e.at.After(since) {
		return
	}
	f.mu.Unlock()
	defer f.mu.Lock()
	sink(e.at, e.stream, e.text, e.partial)
}
