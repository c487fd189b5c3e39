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
	// headBytes is the amount of output that is stored for the first session. After that the
	// program waits at most headWait for the session.
	headBytes = 1 << 20
	headWait  = 5 * time.Second
	// unseenFor is the longest time that the program waits for a session that does not read.
	// After that the session is disconnected.
	unseenFor = 30 * time.Second
)

// Host is the program's side of the sessions. It is safe for concurrent use.
type Host struct {
	dir      string
	tty      bool
	patience time.Duration // unseenFor
	listener *net.UnixListener
	serving  sync.WaitGroup

	// The program's input: a writer, and a reader that keeps the data until the program
	// opens the pipe. typing is held while writing.
	typing         sync.Mutex
	writer, keeper *os.File

	mu       sync.Mutex
	sessions map[*net.UnixConn]bool // the value is set if the session gets output
	closed   bool
	joined   chan struct{} // closed after the first session has joined
	head     []byte        // output frames before the first session
	waited   bool          // no session came in time
	buf      []byte
}

// Listen makes the socket in a container's folder and opens the existing pipe for its
// input. tty is set if the program has a terminal, whose input has no end.
func Listen(dir string, tty bool) (*Host, error) {
	h := &Host{dir: dir, tty: tty, patience: unseenFor, sessions: map[*net.UnixConn]bool{}, joined: make(chan struct{})}
	var err error
	if h.keeper, err = os.OpenFile(InputPath(dir), os.O_RDONLY|unix.O_NONBLOCK, 0); err != nil {
		return nil, err
	}
	if h.writer, err = os.OpenFile(InputPath(dir), os.O_WRONLY|unix.O_NONBLOCK, 0); err == nil {
		err = os.Remove(filepath.Join(dir, socketName)) // socket of a process that was killed
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
	h.listener.SetUnlinkOnClose(false) // the listener has another path of the socket
	h.serving.Go(h.accept)
	return h, nil
}

// at calls use with an address of the socket in a folder. The folder's own path may be
// too long for a socket address.
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
		if err != nil { // for example, no file descriptor is free
			time.Sleep(100 * time.Millisecond)
			continue
		}
		if h.come(c) {
			h.serving.Go(func() { h.serve(c) })
		}
	}
}

// come registers a connection. It becomes a session when it sends hello.
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

// serve reads from a session until it disconnects. Without a terminal, this also ends the
// input, because the program cannot know whether the rest will come.
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

// take writes input to the program. It blocks while the program does not read.
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

// join adds a session; the first one gets the stored output. It returns false if the
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

// send sends frames to a session, and disconnects it if it does not read. Input that the
// session sent earlier is still accepted. The caller holds the mutex.
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
// has been a session. The caller holds the mutex.
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
			h.head = nil // the first session gets only the newest output
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

// Close ends the sessions after all of the program's output was written.
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
	_ = h.writer.Close() // a writer may be active
	_ = h.keeper.Close()
	h.serving.Wait()
}
