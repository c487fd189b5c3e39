package relay

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// headBytes is the amount of output that is kept for the first session. After that
	// much output the program waits for the session for at most headWait.
	headBytes = 1 << 20
	headWait  = 5 * time.Second
	// unseenFor is the longest time that the program waits for a session that takes no
	// output. After that the session is disconnected.
	unseenFor = 30 * time.Second
)

// Host is the program's end of the sessions. It is safe for concurrent use.
type Host struct {
	dir      string
	tty      bool
	patience time.Duration // unseenFor
	listener *net.UnixListener
	serving  sync.WaitGroup

	// The program's input: writer, and a reader that keeps what was written until
	// the program opens the pipe. typing is held by whoever writes.
	typing         sync.Mutex
	writer, keeper *os.File

	mu       sync.Mutex
	sessions map[*net.UnixConn]bool // value: whether it gets output
	closed   bool
	joined   chan struct{} // closed when there was a session
	head     []byte        // frames of output until then
	waited   bool          // nobody came in time
	buf      []byte
}

// Listen makes the socket in a container's folder and opens the pipe for its input,
// which is there already. tty: the program has a terminal, whose input has no end.
func Listen(dir string, tty bool) (*Host, error) {
	h := &Host{dir: dir, tty: tty, patience: unseenFor, sessions: map[*net.UnixConn]bool{}, joined: make(chan struct{})}
	var err error
	if h.keeper, err = os.OpenFile(InputPath(dir), os.O_RDONLY|unix.O_NONBLOCK, 0); err != nil {
		return nil, err
	}
	if h.writer, err = os.OpenFile(InputPath(dir), os.O_WRONLY|unix.O_NONBLOCK, 0); err == nil {
		err = os.Remove(filepath.Join(dir, socketName)) // of a process that was killed
		if errors.Is(err, os.ErrNotExist) {
			err = nil
		}
	}
	if err == nil {
		err = at(dir, func(a *net.UnixAddr) (err error) { h.listener, err = net.ListenUnix("unix", a); return err })
	}
	if err != nil {
		_ = h.keeper.Close()
		_ = h.writer.Close()
		return nil, err
	}
	h.listener.SetUnlinkOnClose(false) // it knows another path
	h.serving.Go(h.accept)
	return h, nil
}

// at calls use with the address of the socket in a folder. The folder's own path may
// be too long for an address.
func at(dir string, use func(*net.UnixAddr) error) error {
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: dir, Err: err}
	}
	defer func() { _ = unix.Close(fd) }()
	return use(&net.UnixAddr{Name: fmt.Sprintf("/proc/self/fd/%d/%s", fd, socketName), Net: "unix"})
}

func (h *Host) accept() {
	for {
		c, err := h.listener.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // no descriptor is free, for example
			time.Sleep(100 * time.Millisecond)
			continue
		}
		if h.come(c) {
			h.serving.Go(func() { h.serve(c) })
		}
	}
}

// come registers a connection, which becomes a session when it says hello.
func (h *Host) come(c *net.UnixConn) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		_ = c.Close()
		return false
	}
	h.sessions[c] = false
	return true
}

// serve takes what a session sends until it leaves. An input without a terminal ends with
// it, because the program cannot know whether the rest will come.
func (h *Host) serve(c *net.UnixConn) {
	defer h.drop(c)
	from, buf := bufio.NewReader(c), []byte(nil)
	kind, _, err := readFrame(from, &buf)
	if err != nil || kind != hello || !h.join(c) {
		return
	}
	for {
		kind, data, err := readFrame(from, &buf)
		switch {
		case err != nil:
			h.endInput()
			return
		case kind == input:
			h.take(data)
		case kind == end:
			h.endInput()
		}
	}
}

// take gives the program input. It waits while the program takes none.
func (h *Host) take(data []byte) {
	h.typing.Lock()
	defer h.typing.Unlock()
	_, _ = h.writer.Write(data) // the input has ended
}

func (h *Host) endInput() {
	if h.tty {
		return
	}
	h.typing.Lock()
	defer h.typing.Unlock()
	_ = h.writer.Close()
}

// join adds a session; the first one gets the output until now. It returns false if the
// program has ended.
func (h *Host) join(c *net.UnixConn) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	h.sessions[c] = true
	select {
	case <-h.joined:
	default:
		close(h.joined)
		h.send(c, h.head)
		h.head = nil
	}
	return true
}

func (h *Host) drop(c *net.UnixConn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.sessions, c)
	_ = c.Close()
}

// send sends frames to a session, and disconnects it if it takes none. Input that the
// session sent before it left is still accepted. The caller holds the mutex.
func (h *Host) send(c *net.UnixConn, frames []byte) {
	_ = c.SetWriteDeadline(time.Now().Add(h.patience))
	if _, err := c.Write(frames); err != nil {
		h.sessions[c] = false
		_ = c.CloseWrite()
	}
}

// Output returns a writer for one of the program's streams: 1 or 2. Its Write never
// fails.
func (h *Host) Output(stream uint8) io.Writer {
	if stream == 2 {
		return &shown{h, errs}
	}
	return &shown{h, out}
}

type shown struct {
	h    *Host
	kind byte
}

func (w *shown) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		n := min(len(rest), maxFrame)
		w.h.show(w.kind, rest[:n])
		rest = rest[n:]
	}
	return len(p), nil
}

func (h *Host) show(kind byte, p []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.keep(kind, p) {
		return
	}
	h.buf = appendFrame(h.buf[:0], kind, p)
	for c, joined := range h.sessions {
		if joined {
			h.send(c, h.buf)
		}
	}
}

// keep stores output for the first session, up to headBytes. It returns false if there
// was a session. The caller holds the mutex.
func (h *Host) keep(kind byte, p []byte) bool {
	for {
		select {
		case <-h.joined:
			return false
		default:
		}
		if len(h.head)+len(p) <= headBytes {
			h.head = appendFrame(h.head, kind, p)
			return true
		}
		if h.waited {
			h.head = nil // it gets the latest
			continue
		}
		h.mu.Unlock()
		select {
		case <-h.joined:
		case <-time.After(headWait):
		}
		h.mu.Lock()
		h.waited = true
	}
}

// Close ends the sessions: the program's output has ended, and all of it was
// written.
func (h *Host) Close() {
	_ = h.listener.Close()
	_ = os.Remove(filepath.Join(h.dir, socketName))
	h.mu.Lock()
	h.closed = true
	for c, joined := range h.sessions {
		if joined {
			h.send(c, appendFrame(nil, over, nil))
		}
		_ = c.Close()
	}
	h.mu.Unlock()
	_ = h.writer.Close() // somebody may be writing
	_ = h.keeper.Close()
	h.serving.Wait()
}
