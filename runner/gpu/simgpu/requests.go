package simgpu

import (
	"bufio"
	"encoding/json"
	"errors"
	"net"
	"time"

	"carma/runner/gpu/simgpu/wire"
)

// request is a client's message; err is set if it is invalid.
type request struct {
	wire.Request
	err error
}

// inbox contains the requests of a client. They are read while earlier ones wait, so that
// the server detects the end of a locked client, and gets the client's answers.
type inbox struct {
	requests chan request
	gone     chan struct{} // closed when the client has disconnected
}

// waiting is the largest number of a client's unanswered requests.
const waiting = 64

// listen reads requests until the connection ends.
func (s *Server) listen(c *process, lines *bufio.Scanner) inbox {
	in := inbox{requests: make(chan request, waiting), gone: make(chan struct{})}
	s.work.Add(1)
	go func() {
		defer s.work.Done()
		defer close(in.requests)
		defer close(in.gone)
		for lines.Scan() {
			var r request
			if err := json.Unmarshal(lines.Bytes(), &r.Request); err != nil {
				r.err = errors.New("a line is no message")
			}
			if r.err == nil && r.Op == wire.Done {
				s.acted(c, r.ID)
				continue
			}
			if !s.take(c, in, r) {
				return
			}
		}
	}()
	return in
}

// take adds a request. If there are too many, it waits, and reads no more. It disconnects
// a locked client that keeps sending, because its end would not be detected.
func (s *Server) take(c *process, in inbox, r request) bool {
	const look = time.Second
	for {
		select {
		case in.requests <- r:
			return true
		case <-time.After(look):
		}
		s.mu.Lock()
		locked := !c.runs()
		s.mu.Unlock()
		if locked {
			return false
		}
	}
}

// whenRunning applies f to the ledger at the present time, once the client runs.
func (s *Server) whenRunning(c *process, gone <-chan struct{}, f func(*ledger)) error {
	for {
		s.mu.Lock()
		if c.runs() {
			s.ledger.advance(s.clock())
			f(s.ledger)
			s.mu.Unlock()
			return nil
		}
		open := c.program.open
		s.mu.Unlock()
		select {
		case <-open:
		case <-gone:
			return net.ErrClosed
		case <-s.stopping:
			return net.ErrClosed
		}
	}
}
