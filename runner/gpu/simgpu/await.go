package simgpu

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"carma/internal/units"
	"carma/runner/suspend"
)

// A suspended process reports this when it reconnects, so a new daemon learns it. But it
// cannot connect while it is frozen. A mark on the disk for each process that is not
// running identifies the processes to wait for. The wait begins when a caller requests
// one, after thawing it.

// marks is the folder of the marks, in the socket's folder.
const marks = "suspended"

// mark records a process that is about to be suspended.
func (s *Server) mark(pid int) {
	p, ok := suspend.ProcessOf(pid)
	if !ok {
		return
	}
	path := markOf(s.dir, p)
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, nil, 0o644)
	}
	if err != nil { // after a restart it may then look like a process that uses no GPU
		s.log.Warn().Err(err).Int("pid", pid).Msg("remember a suspended process of the simulated GPUs")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.marked[pid] = p
}

// markOf returns the file that marks a process. The start time distinguishes it from a
// later process with the same PID.
func markOf(dir string, p suspend.Process) string {
	return filepath.Join(dir, marks, fmt.Sprintf("%d-%d", p.PID, p.Start))
}

// unmark deletes a process's mark.
func (s *Server) unmark(pid int) {
	s.mu.Lock()
	p := s.marked[pid]
	delete(s.marked, pid)
	s.mu.Unlock()
	if err := os.Remove(markOf(s.dir, p)); err != nil && !errors.Is(err, os.ErrNotExist) {
		s.log.Warn().Err(err).Int("pid", pid).Msg("forget a suspended process of the simulated GPUs")
	}
}

// readMarks returns the processes that the previous daemon left suspended. It deletes the
// marks of ended processes.
func readMarks(dir string) map[int]suspend.Process {
	out := map[int]suspend.Process{}
	list, _ := os.ReadDir(filepath.Join(dir, marks)) // usually there is none
	for _, f := range list {
		var p suspend.Process
		if _, err := fmt.Sscanf(f.Name(), "%d-%d", &p.PID, &p.Start); err == nil && lives(p) {
			out[p.PID] = p
			continue
		}
		os.Remove(filepath.Join(dir, marks, f.Name())) // it is read again next time
	}
	return out
}

// lives reports whether a process has not ended.
func lives(p suspend.Process) bool {
	now, ok := suspend.ProcessOf(p.PID)
	return ok && now == p
}

// await returns a program. It waits for a program that is marked, or that may not have
// reconnected yet after a restart of the daemon.
func (s *Server) await(pid int, end time.Time) (*program, error) {
	timer := time.NewTimer(time.Until(end))
	defer timer.Stop()
	for {
		s.mu.Lock()
		p, news, closed := s.ledger.programs[pid], s.news, s.closed
		process, marked := s.marked[pid]
		s.mu.Unlock()
		young := s.admitting
		select {
		case <-young:
			young = nil
		default:
		}
		switch {
		case closed:
			return nil, errClosed
		case p != nil:
			return p, nil
		case marked && !lives(process):
			s.unmark(pid)
			return nil, errCode(suspend.CodeInvalidValue)
		case !marked && young == nil:
			return nil, errCode(suspend.CodeNotInitialized)
		}
		select {
		case <-news:
		case <-young:
		case <-timer.C:
			return nil, errSlow
		case <-s.stopping:
			return nil, errClosed
		}
	}
}

// tellAll wakes all waiting goroutines. The caller holds mu.
func (s *Server) tellAll() {
	close(s.news)
	s.news = make(chan struct{})
}

// agree sends a state to the clients of a program, and waits until all have applied it.
func (s *Server) agree(p *program, state suspend.State, end time.Time) error {
	s.mu.Lock()
	for _, c := range p.clients {
		c.hearOf(told(state))
	}
	s.mu.Unlock()
	timer := time.NewTimer(time.Until(end))
	defer timer.Stop()
	for {
		s.mu.Lock()
		news, quiet, none := s.news, p.quiet(), len(p.clients) == 0
		s.mu.Unlock()
		switch {
		case none:
			return errCode(suspend.CodeNotInitialized)
		case quiet:
			return nil
		}
		select {
		case <-news:
		case <-timer.C:
			return errSlow
		case <-s.stopping:
			return errClosed
		}
	}
}

// copying waits for the simulated time of copying a program's memory.
func (s *Server) copying(p *program, end time.Time) error {
	s.mu.Lock()
	var held units.Bytes
	for _, c := range p.clients {
		for _, u := range c.uses {
			held += u.held
		}
	}
	takes := time.Duration(float64(s.copy.Time(held)) / s.ledger.speed)
	s.mu.Unlock()
	slow := time.Until(end) < takes
	if slow {
		takes = time.Until(end)
	}
	timer := time.NewTimer(takes)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.stopping:
		return errClosed
	}
	if slow {
		return errSlow
	}
	return nil
}

// acted records that a client has carried out a state change.
func (s *Server) acted(c *process, id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.done = max(c.done, min(id, c.told))
	s.tellAll()
}

// settled waits until no call is changing the program of a connecting client.
func (s *Server) settled(pid int) {
	end := time.NewTimer(answerLimit)
	defer end.Stop()
	for {
		s.mu.Lock()
		p, news := s.ledger.programs[pid], s.news
		free := p == nil || !p.busy
		s.mu.Unlock()
		if free {
			return
		}
		select {
		case <-news:
		case <-end.C:
			return
		case <-s.stopping:
			return
		}
	}
}
