package logfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"carma/containers"
)

// Writer writes a folder. It is safe for concurrent use.
type Writer struct {
	dir  string
	size int64 // of a file
	lock *os.File
	now  func() time.Time

	mu   sync.Mutex
	file *os.File
	n    int   // the file's number
	at   int64 // the file's size
	last time.Time
	buf  []byte
	// entries are those that came, and told is how many a reader of the files
	// can know of: fewer if the last ones could not be stored.
	entries, told int64
}

// Create begins the log of a container in an existing folder, and locks it.
// It keeps the newest bytes at least; 0: an amount of its own. Folders are not
// written twice.
func Create(dir string, bytes int64) (*Writer, error) {
	w := &Writer{dir: dir, size: FileSize, now: time.Now}
	if bytes > 0 {
		w.size = max(bytes/(Files-1), minFileSize) // one more is being written
	}
	var err error
	if w.lock, err = os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return nil, err
	}
	if err := unix.Flock(int(w.lock.Fd()), unix.LOCK_EX); err != nil {
		_ = w.lock.Close()
		return nil, fmt.Errorf("lock %s: %w", w.lock.Name(), err)
	}
	ns, err := numbers(dir)
	if err == nil && len(ns) > 0 {
		w.n = ns[len(ns)-1]
	}
	if err == nil {
		err = w.next()
	}
	if err != nil {
		_ = w.lock.Close()
		return nil, err
	}
	return w, nil
}

// Clear deletes what is in the folder, unless its writer lives: a start that was
// broken off has its runtime's complaints in it.
func Clear(dir string) error {
	if over, err := Ended(dir); err != nil || !over {
		return err
	}
	ns, err := numbers(dir)
	for _, n := range ns {
		if err == nil {
			err = os.Remove(filePath(dir, n))
		}
	}
	return err
}

// next begins another file. The oldest goes when something is in the new one:
// a full disk must not cost what is kept already.
func (w *Writer) next() error {
	f, err := os.OpenFile(filePath(w.dir, w.n+1), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if w.file != nil {
		_ = w.file.Close()
	}
	w.file, w.at = f, 0
	w.n++
	return nil
}

// write gives the entries their times and stores them together. What cannot
// be stored, on a full disk, is lost and counted; the files stay readable.
func (w *Writer) write(entries []Entry) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(entries) == 0 {
		return nil
	}
	before := w.entries
	w.entries += int64(len(entries))
	if w.file == nil || w.at >= w.size {
		if err := w.next(); err != nil {
			return err
		}
	}
	w.buf = w.buf[:0]
	if w.at == 0 && before > 0 {
		w.add(Entry{Stream: missing, Text: containers.Lines{Before: before}.Text()})
	}
	for _, e := range entries {
		w.add(e)
	}
	return w.store()
}

// add gives an entry its time: the clock may be set back, and is coarser than
// a line.
func (w *Writer) add(e Entry) {
	e.At = w.now()
	if !e.At.After(w.last) {
		e.At = w.last.Add(1)
	}
	w.last = e.At
	w.buf = appendEntry(w.buf, e)
}

// store writes what was added.
func (w *Writer) store() error {
	n, err := w.file.Write(w.buf)
	if err != nil {
		w.giveUp()
		return err
	}
	if w.at == 0 {
		w.prune()
	}
	w.at += int64(n)
	w.told = w.entries
	return nil
}

// giveUp ends a file in which a write failed: half an entry would hide what
// follows, and a reader may have seen it.
func (w *Writer) giveUp() {
	_ = w.file.Truncate(w.at)
	_ = w.file.Close()
	if w.at == 0 {
		_ = os.Remove(w.file.Name())
	}
	w.file = nil
}

func (w *Writer) prune() {
	ns, err := numbers(w.dir)
	if err != nil {
		return
	}
	for _, n := range ns[:max(0, len(ns)-Files)] {
		_ = os.Remove(filePath(w.dir, n))
	}
}

// Copy stores what r gives, line by line, until its end. A line goes to the
// folder when it is complete or has [Piece] bytes, and at the end. What
// cannot be stored is read all the same: the container must not wait for it.
func (w *Writer) Copy(stream uint8, r io.Reader) error {
	var lost error
	var entries []Entry
	buf := make([]byte, 4*Piece)
	have, open := 0, false // bytes in buf; a piece of the line is stored
	for {
		n, err := r.Read(buf[have:])
		have += n
		rest := buf[:have]
		entries = entries[:0]
		for {
			line, after, ended := bytes.Cut(rest, []byte{'\n'})
			if !ended && len(line) < Piece {
				break
			}
			if len(line) > Piece || !ended {
				entries = append(entries, Entry{Stream: stream, Partial: true, Text: line[:Piece]})
				rest, open = rest[Piece:], true
				continue
			}
			entries = append(entries, Entry{Stream: stream, Text: line})
			rest, open = after, false
		}
		if err != nil && (len(rest) > 0 || open) {
			entries = append(entries, Entry{Stream: stream, Text: rest})
		}
		if err := w.write(entries); err != nil {
			lost = err
		}
		if err == io.EOF {
			return lost
		}
		if err != nil {
			return err
		}
		have = copy(buf, rest)
	}
}

// Close ends the log. If its end could not be stored, it says so if it can.
func (w *Writer) Close() error {
	var err error
	if w.told < w.entries {
		if err = w.next(); err == nil {
			w.buf = w.buf[:0]
			w.add(Entry{Stream: missing, Text: containers.Lines{Before: w.entries}.Text()})
			err = w.store()
		}
	}
	if w.file != nil {
		err = errors.Join(err, w.file.Close())
	}
	_ = w.lock.Close()
	return err
}

// readyWithin is how long a container waits for its logger.
const readyWithin = 5 * time.Second

// Run is the logging process that containerd's shim starts: descriptors 3 and
// 4 are the container's output, closing 5 says that we are ready. For bytes see
// [Create]. It returns an exit code.
func Run(dir string, bytes int64) int {
	// The shim asks it to end when the container is deleted. By then the pipes
	// end too, and what is in them is wanted.
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGPIPE)
	// Its container begins when this is closed, and waits for ever otherwise:
	// an earlier writer of the folder may end late.
	ready := sync.OnceFunc(func() { _ = os.NewFile(5, "ready").Close() })
	time.AfterFunc(readyWithin, ready)
	w, err := Create(dir, bytes)
	ready()
	code := 0
	if err != nil {
		fmt.Fprintln(os.Stderr, "carma: the output cannot be kept:", err)
		code = 1
	}
	var done sync.WaitGroup
	for fd, stream := range map[uintptr]uint8{3: 1, 4: 2} {
		done.Go(func() {
			pipe := os.NewFile(fd, "output")
			if w == nil {
				_, _ = io.Copy(io.Discard, pipe)
				return
			}
			_ = w.Copy(stream, pipe)
		})
	}
	done.Wait()
	if w != nil {
		_ = w.Close()
	}
	return code
}
