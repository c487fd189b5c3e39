package logfile

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"time"
)

// barEvery is the longest time before the text of a progress bar is stored. A bar ends
// its lines with carriage returns. Without this limit a reader would get it in pieces of
// [Piece] bytes, some minutes of output each.
const barEvery = 250 * time.Millisecond

// Copy stores the data of r, line by line, until its end. It stores a line when the line
// is complete, when it has [Piece] bytes, and at the end of r. It stores a line with a
// carriage return at the latest barEvery after the line's newest piece. Copy continues to
// read if storing fails, because the container must not wait for the log. It returns the
// last such error.
func (w *Writer) Copy(stream uint8, r io.Reader) error {
	c := &copier{w: w, stream: stream, buf: make([]byte, 4*Piece)}
	for {
		n, err := r.Read(c.buf[c.have:]) // the timer does not touch this part
		if err = c.take(n, err); err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return errors.Join(err, c.lost)
		}
	}
}

// copier cuts a stream into entries.
type copier struct {
	w      *Writer
	stream uint8

	mu         sync.Mutex // guards all fields below
	buf        []byte
	from, have int         // bounds of the part of buf that is read but not stored
	open       bool        // a piece of the current line is stored
	timer      *time.Timer // stores a progress bar, or nil if no bar is pending
	entries    []Entry
	lost       error // the last error of storing
}

// take stores the entries that the next n bytes have completed. It returns err, the
// reader's error.
func (c *copier) take(n int, err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.have += n
	rest := c.buf[c.from:c.have]
	c.entries = c.entries[:0]
	for {
		line, after, ended := bytes.Cut(rest, []byte{'\n'})
		if !ended && len(line) < Piece {
			break
		}
		if len(line) > Piece || !ended {
			c.add(line[:Piece], true)
			rest = rest[Piece:]
			continue
		}
		c.add(line, false)
		rest = after
	}
	if err != nil && (len(rest) > 0 || c.open) {
		c.add(rest, false)
		rest = nil
	}
	c.store()
	c.from, c.have = 0, copy(c.buf, rest)
	switch {
	case err != nil && c.timer != nil:
		c.timer.Stop()
	case err == nil && c.timer == nil && c.bar() > 0:
		c.timer = time.AfterFunc(barEvery, c.cut)
	}
	return err
}

// bar returns the number of bytes to store of an unfinished line, or 0 if the line is no
// progress bar. A terminal ends lines with \r\n, which stay together.
func (c *copier) bar() int {
	text := c.buf[c.from:c.have]
	if c.w.tty {
		text = bytes.TrimSuffix(text, []byte{'\r'})
	}
	if bytes.IndexByte(text, '\r') < 0 {
		return 0
	}
	return len(text)
}

// cut stores the unfinished progress bar.
func (c *copier) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timer = nil
	if n := c.bar(); n > 0 {
		c.entries = c.entries[:0]
		c.add(c.buf[c.from:c.from+n], true)
		c.store()
		c.from += n
	}
}

func (c *copier) add(text []byte, partial bool) {
	c.entries = append(c.entries, Entry{Stream: c.stream, Partial: partial, Text: text})
	c.open = partial
}

func (c *copier) store() {
	if err := c.w.write(c.entries); err != nil {
		c.lost = err
	}
}
