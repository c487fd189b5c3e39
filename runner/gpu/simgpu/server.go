package simgpu

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"carma/configs/servers"
	"carma/mapper/model"
	"carma/runner/gpu"
	"carma/runner/gpu/simgpu/wire"
	"carma/runner/suspend"
)

// Server is a simulated GPU server. It implements [gpu.Source].
type Server struct {
	name      string
	clock     func() time.Time
	log       zerolog.Logger
	listener  *net.UnixListener
	dir, path string // the folder, and the socket in it
	copy      servers.Copying
	socket    os.FileInfo   // the socket when it was made
	admitting chan struct{} // closed once allocations are answered
	stopping  chan struct{} // closed by Close

	mu     sync.Mutex // guards the fields below
	ledger *ledger
	conns  map[*net.UnixConn]struct{}
	closed bool
	marked map[int]suspend.Process // see mark
	news   chan struct{}           // closed and replaced by tellAll

	work sync.WaitGroup // accept loop, and two goroutines per connection
}

var (
	_ gpu.Source = (*Server)(nil)
	_ gpu.Sharer = (*Server)(nil)
)

// New serves s in folder dir, which must exist; tasks of any user may connect. New
// replaces a socket left by a dead daemon, and returns an error if a running daemon
// serves it. clock returns simulated time; it must not go backwards and must not call the
// server. Simulated time runs at speed 1 until [Server.SetSpeed]. Close ends it.
func New(s servers.Server, dir string, clock func() time.Time, log zerolog.Logger) (*Server, error) {
	path := filepath.Join(dir, wire.Socket)
	if c, err := net.Dial("unix", path); err == nil {
		c.Close()
		return nil, fmt.Errorf("serve simulated GPUs: another daemon serves %s", path)
	}
	err := os.Remove(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("serve simulated GPUs: %w", err)
	}
	succeeds := err == nil
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("serve simulated GPUs: %w", err)
	}
	listener.SetUnlinkOnClose(false) // by then it may be the successor's
	if err := os.Chmod(path, 0o666); err != nil {
		listener.Close()
		return nil, fmt.Errorf("serve simulated GPUs: %w", err)
	}
	socket, err := os.Lstat(path)
	if err != nil {
		listener.Close()
		return nil, fmt.Errorf("serve simulated GPUs: %w", err)
	}
	server := &Server{
		name: "sim:" + s.Name, clock: clock, log: log,
		listener: listener, path: path, socket: socket,
		admitting: make(chan struct{}), stopping: make(chan struct{}),
		ledger: newLedger(s, clock()),
		conns:  map[*net.UnixConn]struct{}{},
		dir:    dir, copy: s.Copying, marked: readMarks(dir), news: make(chan struct{}),
	}
	server.work.Add(2)
	go server.accept()
	go server.admitAllocs(succeeds)
	return server, nil
}

// helloTime is longer than any client's pause between attempts to connect.
const helloTime = 2 * time.Second

// admitAllocs allows allocations: at once or, if the server succeeds a server with
// clients, after these have had time to declare their memory.
func (s *Server) admitAllocs(succeeds bool) {
	defer s.work.Done()
	if succeeds {
		select {
		case <-time.After(helloTime):
		case <-s.stopping:
			return
		}
	}
	close(s.admitting)
}

// Name returns "sim:" and the server's name.
func (s *Server) Name() string { return s.name }

// Sharing returns the sharing of the simulated devices: kernels of several tasks run at the
// same time, as with MPS.
func (s *Server) Sharing() model.Sharing { return model.SharingMPS }

// GPUs lists the simulated devices.
func (s *Server) GPUs(context.Context) ([]gpu.Device, error) {
	var out []gpu.Device
	for _, d := range s.ledger.devices { // never changes
		out = append(out, gpu.Device{UUID: d.UUID, Index: d.Index, Model: d.Model, Capacity: d.Memory})
	}
	return out, nil
}

// Sample reads all devices. Activity is the mean since the last call.
func (s *Server) Sample(ctx context.Context) ([]gpu.Sample, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("sample simulated GPUs: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, fmt.Errorf("sample simulated GPUs: %w", net.ErrClosed)
	}
	s.ledger.advance(s.clock())
	var out []gpu.Sample
	for _, d := range s.ledger.devices {
		out = append(out, d.sample(s.ledger.now))
	}
	return out, nil
}

// SetSpeed sets the number of simulated seconds per second of wall-clock time, and
// informs the tasks. It ignores a speed that is not positive.
func (s *Server) SetSpeed(speed float64) {
	if !(speed > 0) {
		return
	}
	s.change(func(l *ledger) {
		l.speed = speed
		l.settle()
	})
}

// change applies f to the ledger, at the present time.
func (s *Server) change(f func(*ledger)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ledger.advance(s.clock())
	f(s.ledger)
}

// Close disconnects all tasks, which continue at their last speed, and waits until all
// goroutines of the server have ended. If there were tasks, their socket stays, like
// after a kill of the daemon, so that the next server waits for them.
func (s *Server) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	close(s.stopping)
	tasks := len(s.ledger.processes) > 0
	for c := range s.conns {
		c.Close()
	}
	s.mu.Unlock()
	err := s.listener.Close()
	s.work.Wait()
	if now, e := os.Lstat(s.path); e == nil && os.SameFile(now, s.socket) && !tasks {
		err = errors.Join(err, os.Remove(s.path))
	}
	if err != nil {
		return fmt.Errorf("close simulated GPUs: %w", err)
	}
	return nil
}

// maxConns is the largest number of connections, because unknown processes may keep them
// open.
const maxConns = 1024

func (s *Server) accept() {
	defer s.work.Done()
	for {
		c, err := s.listener.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // for example, out of file descriptors
			s.log.Warn().Err(err).Msg("accept connection to simulated GPUs")
			time.Sleep(100 * time.Millisecond)
			continue
		}
		if !s.admit(c) {
			c.Close()
		}
	}
}

// admit starts serving a connection, unless the server is closed or full.
func (s *Server) admit(c *net.UnixConn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.conns) >= maxConns {
		return false
	}
	s.conns[c] = struct{}{}
	s.work.Add(1)
	go func() {
		defer s.work.Done()
		s.serve(c)
		c.Close()
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
	}()
	return true
}
