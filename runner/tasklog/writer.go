package tasklog

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"carma/internal/failpoint"
)

// bufferSize is the number of bytes of output that wait in memory for Flush, or while the
// disk is full.
const bufferSize = 2 * MaxLine

// Writer appends to the log of one attempt. Its methods may be called from
// several goroutines.
//
// A failure to write, mostly because of a full disk, never fails the task. The writer
// keeps some output in memory and tries again at each call. Output that it cannot keep is
// lost, counted, and recorded in the log once the log can be written. The next call
// returns the error once, for the caller to log.
type Writer struct {
	s *Store
	k key

	mu      sync.Mutex // guards all below
	f       file       // the newest segment
	seg     segment
	size    int64 // bytes of seg, including buf
	out     loss  // the output in seg, including lost output and excluding notes
	written int64 // bytes of seg, without buf
	whole   int64 // end of the last line that is completely written

	older atomic.Int64 // size of the older segments; others may drop some of them

	buf     []byte
	scratch []byte
	last    time.Time

	failing  bool  // the last attempt to write failed
	cause    error // the latest failure
	report   error // a failure that was not returned yet
	lost     loss  // lost output that is not recorded in the log yet
	lostEver loss

	changed chan struct{} // closed when there is more to read; nil if nobody waits
	closed  bool
}

// Writer opens the log of an attempt for writing. If it is open already, the error wraps
// [ErrOpen]. If there is a log from before a restart, a line torn by the crash is dropped
// and writing continues after it; see [Writer.Since]. If the folder is missing or cannot be
// written, output is lost, and counted, until it can.
func (s *Store) Writer(task int64, attempt int) (*Writer, error) {
	w := &Writer{s: s, k: key{task, attempt}}
	w.mu.Lock() // a follower waits until the writer is ready
	defer w.mu.Unlock()

	s.mu.Lock()
	taken := s.writers[w.k] != nil
	if !taken {
		s.writers[w.k] = w
	}
	s.mu.Unlock()
	if taken {
		return nil, fmt.Errorf("log of task %d, attempt %d: %w", task, attempt, ErrOpen)
	}
	w.opened()
	return w, nil
}

// Write appends a line of the given stream. text may end with its newline; it is not kept
// after the call. The times of lines increase: a line that is not later than the newest
// in the log is known already and is ignored. An error means that output does not reach
// the disk. The caller logs the error and continues.
func (w *Writer) Write(at time.Time, stream Stream, text []byte, partial bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return fs.ErrClosed
	}
	if !at.After(w.last) {
		return nil
	}
	text = bytes.TrimSuffix(text, []byte("\n"))
	for {
		line, rest, more := bytes.Cut(text, []byte("\n"))
		if len(line) > MaxLine {
			w.put(Line{At: at, Stream: stream, Text: text[:MaxLine], Partial: true})
			text = text[MaxLine:]
			continue
		}
		w.put(Line{At: at, Stream: stream, Text: line, Partial: partial && !more})
		if !more {
			break
		}
		text = rest
	}
	w.last = at
	w.wake()
	return w.takeReport()
}

// put stores a line, or counts it as lost.
func (w *Writer) put(l Line) {
	w.scratch = appendLine(w.scratch[:0], l)
	w.noteLoss(len(w.scratch))
	if w.missing() || !w.store(w.scratch) { // to keep the order, no line is stored before the note
		w.lose(1, int64(len(w.scratch)))
	}
}

// store adds an encoded line to the buffer.
func (w *Writer) store(b []byte) bool {
	if !w.opened() || !w.room(int64(len(b))) {
		return false
	}
	w.append(b)
	w.out.lines++
	w.out.bytes += int64(len(b))
	return true
}

func (w *Writer) append(b []byte) {
	w.buf = append(w.buf, b...)
	w.size += int64(len(b))
}

// room makes room for n bytes, in the buffer and within the limits.
func (w *Writer) room(n int64) bool {
	if int64(len(w.buf))+n > bufferSize && !w.flush() {
		return false
	}
	if w.size+n > w.s.Limits().Attempt/shares && !w.rotate() {
		return false
	}
	return w.dropOldest(n)
}

// flush writes the buffer. If a write ends within a line, the next one
// completes it.
func (w *Writer) flush() bool {
	if len(w.buf) == 0 {
		return true
	}
	if err := failpoint.Error("output-write-begins"); err != nil {
		w.fail(err)
		return false
	}
	want := int64(len(w.buf))
	if err := w.s.take(w, want); err != nil {
		w.fail(err)
		return false
	}
	n, err := w.f.WriteAt(w.buf, w.written)
	if err == nil {
		err = failpoint.Error("output-written")
	}
	if i := bytes.LastIndexByte(w.buf[:n], '\n'); i >= 0 {
		w.whole = w.written + int64(i) + 1
	}
	w.written += int64(n)
	w.buf = w.buf[:copy(w.buf, w.buf[n:])]
	if int64(n) < want {
		w.s.give(w.k.task, want-int64(n))
	}
	if err != nil {
		w.fail(err)
		return false
	}
	w.failing = false
	return true
}

// Flush writes the buffer to the kernel, where it survives the end of this process.
// Followers do not wait for it. Call it a few times per second, so that a crash leaves
// little to be read again.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.look()
		w.flush()
	}
	return w.takeReport()
}

// Pending reports whether Flush has something to write, or to try again. If it has not,
// Flush only checks whether the file still exists.
func (w *Writer) Pending() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.buf) > 0 || w.failing || w.f == nil
}

// Close ends the log after the attempt. It syncs the output to the disk, and ends the
// followers. Once Close has returned nil, the container, and with it the engine's copy of
// the output, may be removed. Close may be repeated.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	w.noteLoss(0)
	if w.f != nil && !w.flush() {
		w.lose(int64(bytes.Count(w.buf, []byte("\n"))), int64(len(w.buf)))
	}
	var errs []error
	if w.missing() {
		errs = append(errs, fmt.Errorf("%d lines (%d bytes) lost: %w", w.lost.lines, w.lost.bytes, w.cause))
		w.s.owe(w.k, debt{w.lost, w.last, w.cause})
	}
	if w.f != nil {
		if w.whole < w.written {
			errs = append(errs, w.f.Truncate(w.whole))
		}
		errs = append(errs, w.f.Sync(), w.f.Close(), w.syncOlder())
	}
	w.closed = true
	w.forget()
	w.wake()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("log of task %d, attempt %d: %w", w.k.task, w.k.attempt, err)
	}
	return nil
}

func (w *Writer) syncOlder() error {
	paths := []string{w.s.folder(w.k.task), filepath.Dir(w.s.folder(w.k.task))}
	segs, err := w.s.segments(w.k)
	if err != nil {
		return err
	}
	for _, seg := range segs {
		paths = append(paths, w.s.path(w.k, seg))
	}
	for _, p := range paths {
		f, err := os.Open(p)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return err
		}
	}
	return nil
}

func (w *Writer) forget() {
	w.s.mu.Lock()
	delete(w.s.writers, w.k)
	w.s.mu.Unlock()
}

// wake wakes the followers after new output.
func (w *Writer) wake() {
	if w.changed != nil {
		close(w.changed)
		w.changed = nil
	}
}

// progress is the state that a follower needs before it reads.
type progress struct {
	newest int64 // start of the newest segment
	ended  bool
	more   <-chan struct{} // closed when there is more than at this moment
}

// progress flushes the buffer, so that all output can be read from the files, and returns
// the state.
func (w *Writer) progress() progress {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return progress{newest: w.seg.start, ended: true}
	}
	if w.f != nil {
		w.flush()
	}
	if w.changed == nil {
		w.changed = make(chan struct{})
	}
	return progress{newest: w.seg.start, more: w.changed}
}
