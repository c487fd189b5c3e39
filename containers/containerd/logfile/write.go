package logfile

import (
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
	"carma/containers/containerd/relay"
)

// Writer writes the log of one container. It is safe for concurrent use.
type Writer struct {
	dir  string
	size int64 // size in bytes at which a new file begins
	tty  bool  // the output is from a terminal
	lock *os.File
	now  func() time.Time

	mu   sync.Mutex
	file *os.File
	n    int   // the file's number
	at   int64 // the file's size
	last time.Time
	buf  []byte
	// entries counts the entries received so far. told counts the entries that a reader can
	// learn of; it is lower if the last ones could not be stored.
	entries, told int64
}

// Create begins the log of a container in an existing folder, and locks the folder. The
// log keeps at least the given number of newest bytes, or a default amount if bytes is 0.
// Each folder has only one writer.
func Create(dir string, bytes int64) (*Writer, error) {
	w := &Writer{dir: dir, size: FileSize, now: time.Now}
	if bytes > 0 {
		w.size = max(bytes/(Files-1), minFileSize) // the newest file may be almost empty
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

// Clear deletes the log files in a folder, unless their writer runs. It is called after
// an interrupted start, when the files contain messages of the container's runtime.
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

// next begins another file. It deletes the oldest file only when the new one contains an entry,
// so that no stored output is lost on a full disk.
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

// write gives the entries their times and stores them together. Entries that
// cannot be stored (full disk) are lost and counted; the files stay readable.
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

// add stamps an entry with a time later than the last. The clock alone is not enough: it
// may be set back, and two lines may come within one tick.
func (w *Writer) add(e Entry) {
	e.At = w.now()
	if !e.At.After(w.last) {
		e.At = w.last.Add(1)
	}
	w.last = e.At
	w.buf = appendEntry(w.buf, e)
}

// store writes the buffered entries.
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

// giveUp ends a file after a failed write. A half entry would hide all later ones, and a
// reader may already have seen it.
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

// Close ends the log. If the last entries could not be stored, it tries to store the
// number of missing entries.
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

// readyWithin is the longest time that a container waits for its logger, see [Run].
const readyWithin = 5 * time.Second

// Talk is the way in which a container's program is connected with users.
type Talk string

// The kinds of connections.
const (
	// TalkNone means only output, no input.
	TalkNone Talk = ""
	// TalkTerminal means a terminal, whose output comes on the first descriptor.
	TalkTerminal Talk = "tty"
	// TalkInput means an input and two streams of output.
	TalkInput Talk = "input"
)

// Run is the main function of the logging process that containerd's shim starts.
// Descriptors 3 and 4 are the container's output. Closing 5 signals the shim that the
// logger is ready. For bytes see [Create]. If the program has a terminal or an input, Run
// is the host of its sessions. Run returns an exit code.
func Run(dir string, bytes int64, talk Talk) int {
	// The shim signals the logger when the container is deleted. The pipes end then too, and
	// the logger must still read their content.
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGPIPE)
	// The container's program begins when this descriptor is closed. That happens after
	// [readyWithin] at the latest, because an earlier writer may keep the folder locked.
	ready := sync.OnceFunc(func() { _ = os.NewFile(5, "ready").Close() })
	time.AfterFunc(readyWithin, ready)
	code := 0
	w, err := Create(dir, bytes)
	if err != nil {
		fmt.Fprintln(os.Stderr, "carma: the output cannot be kept:", err)
		code = 1
	}
	var host *relay.Host
	if talk != TalkNone {
		if host, err = relay.Listen(dir, talk == TalkTerminal); err != nil {
			fmt.Fprintln(os.Stderr, "carma: nobody can be connected with the program:", err)
			code = 1
		}
	}
	ready()
	pipes := map[uintptr]uint8{3: 1, 4: 2}
	if talk == TalkTerminal {
		delete(pipes, 4) // a terminal's second pipe has no writer, and ends only with the shim
	}
	if w != nil {
		w.tty = talk == TalkTerminal
	}
	var done sync.WaitGroup
	for fd, stream := range pipes {
		done.Go(func() {
			var pipe io.Reader = os.NewFile(fd, "output")
			if host != nil {
				pipe = io.TeeReader(pipe, host.Output(stream))
			}
			if w == nil {
				_, _ = io.Copy(io.Discard, pipe)
				return
			}
			_ = w.Copy(stream, pipe)
		})
	}
	done.Wait()
	if host != nil {
		host.Close()
	}
	if w != nil {
		_ = w.Close()
	}
	return code
}
