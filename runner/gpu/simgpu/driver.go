package simgpu

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"carma/internal/units"
	"carma/runner/suspend"
)

// driver simulates the checkpoint functions of NVIDIA's driver for the clients of a
// server, with their states and error codes (package suspend). A process is identified by
// the PID of its connections in the kernel.
//
// As with the real driver, the process itself takes part: it answers that it is locked,
// or that it continues. So a frozen process cannot be locked (code 600) or restored.
type driver struct{ s *Server }

// Driver returns a caller for package suspend and the tasks of this server.
func (s *Server) Driver() suspend.Caller { return driver{s} }

// answerLimit is the time that a call without its own limit waits for a process.
const answerLimit = 10 * time.Second

// errClosed means that the server ends. Nothing was changed, or all was reverted.
var errClosed = &suspend.Unavailable{Why: "the simulated GPU server is closed"}

// errSlow means that the call's time is up.
var errSlow = errors.New("the time is up")

// errCode is an error code as an error.
type errCode suspend.Code

func (e errCode) Error() string { return suspend.Code(e).String() }

// Call implements [suspend.Caller]. ctx does not interrupt a call that has begun.
func (d driver) Call(ctx context.Context, r suspend.Request) (suspend.State, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if r.Call == suspend.CallInit {
		return 0, nil
	}
	if r.Limit <= 0 {
		r.Limit = answerLimit
	}
	if r.Wait <= 0 {
		r.Wait = r.Limit
	}
	state, err := d.do(r, time.Now().Add(r.Limit))
	var code errCode
	switch {
	case errors.As(err, &code):
		err = &suspend.CallError{Call: r.Call, PID: r.PID, Fault: suspend.Answered, Code: suspend.Code(code)}
	case errors.Is(err, errSlow):
		err = &suspend.CallError{Call: r.Call, PID: r.PID, Fault: suspend.Hung, Limit: r.Limit, Text: "simulated"}
	}
	return state, err
}

func (d driver) do(r suspend.Request, end time.Time) (suspend.State, error) {
	p, err := d.s.await(r.PID, end)
	if err != nil {
		return 0, err
	}
	switch r.Call {
	case suspend.CallState:
		d.s.mu.Lock()
		defer d.s.mu.Unlock()
		return p.state, nil
	case suspend.CallLock:
		return 0, d.lock(p, min(r.Wait, r.Limit))
	case suspend.CallCheckpoint:
		return 0, d.checkpoint(p, end)
	case suspend.CallRestore:
		return 0, d.restore(p, r.Pairs, end)
	case suspend.CallUnlock:
		return 0, d.unlock(p, end)
	}
	return 0, errCode(suspend.CodeInvalidValue)
}

// begin reserves a program for a call that changes it, and changes its state.
func (s *Server) begin(p *program, from, to suspend.State) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return errClosed
	case len(p.clients) == 0:
		return errCode(suspend.CodeNotInitialized)
	case p.busy || p.state != from:
		return errCode(suspend.CodeIllegalState)
	}
	p.busy, p.ours = true, true
	s.put(p, to)
	return nil
}

// put changes a program's state. The caller holds mu.
func (s *Server) put(p *program, state suspend.State) {
	s.ledger.advance(s.clock())
	p.move(state)
	s.ledger.settle()
}

// finish ends a call. After an error the program has the given state, and its clients get
// a message.
func (s *Server) finish(p *program, err error, state suspend.State) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.busy = false
	if err != nil {
		s.put(p, state)
		p.tell()
	}
	s.tellAll()
	return err
}

// lock stops a program. wait limits the time until it has stopped.
func (d driver) lock(p *program, wait time.Duration) error {
	s := d.s
	if err := s.begin(p, suspend.Running, suspend.Locked); err != nil {
		return err
	}
	s.mark(p.pid)
	err := s.agree(p, suspend.Locked, time.Now().Add(wait))
	if err = s.finish(p, err, suspend.Running); err != nil {
		s.unmark(p.pid)
	}
	if errors.Is(err, errSlow) {
		return errCode(suspend.CodeNotReady)
	}
	return err
}

// checkpoint copies the memory of a locked program, and removes it from its GPUs.
func (d driver) checkpoint(p *program, end time.Time) error {
	s := d.s
	if err := s.begin(p, suspend.Locked, suspend.Checkpointing); err != nil {
		return err
	}
	err := s.copying(p, end)
	if err == nil {
		err = s.agree(p, suspend.Checkpointed, end)
	}
	if err == nil {
		s.mu.Lock()
		s.put(p, suspend.Checkpointed)
		s.mu.Unlock()
	}
	return s.finish(p, err, suspend.Locked)
}

// restore assigns GPUs to a program again, and copies its memory there.
func (d driver) restore(p *program, pairs []suspend.Pair, end time.Time) error {
	s := d.s
	// What other tasks have on the GPU must be known.
	select {
	case <-s.admitting:
	case <-s.stopping:
		return errClosed
	case <-time.After(time.Until(end)):
		return errSlow
	}
	if err := s.begin(p, suspend.Checkpointed, suspend.Checkpointed); err != nil {
		return err
	}
	back, err := s.place(p, pairs)
	if err == nil {
		err = s.copying(p, end)
	}
	if err == nil {
		err = s.agree(p, suspend.Locked, end)
	}
	s.mu.Lock()
	if err == nil {
		s.put(p, suspend.Locked)
	} else {
		s.put(p, suspend.Checkpointed)
		back()
	}
	s.mu.Unlock()
	return s.finish(p, err, suspend.Checkpointed)
}

// unlock lets a program continue.
func (d driver) unlock(p *program, end time.Time) error {
	s := d.s
	if err := s.begin(p, suspend.Locked, suspend.Locked); err != nil {
		return err
	}
	err := s.agree(p, suspend.Running, end)
	if err == nil {
		s.mu.Lock()
		s.put(p, suspend.Running)
		s.mu.Unlock()
		s.unmark(p.pid)
	}
	return s.finish(p, err, suspend.Locked)
}

// place allocates the memory of a program that is being restored, on its target GPUs.
// back reverts the moves.
func (s *Server) place(p *program, pairs []suspend.Pair) (back func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	targets, err := s.targets(p, pairs)
	if err != nil {
		return func() {}, err
	}
	need := map[*device]units.Bytes{}
	for u, d := range targets {
		need[d] += u.held
	}
	for d, n := range need {
		if n > d.Memory-d.used() {
			return func() {}, errCode(suspend.CodeOutOfMemory)
		}
	}
	were := map[*use]*device{}
	for u, d := range targets {
		were[u], u.device = u.device, d
	}
	s.put(p, suspend.Restoring)
	return func() {
		for u, d := range were {
			u.device = d
		}
	}, nil
}

// targets returns the devices for a moved program. The pairs must name all its devices,
// once each, and the new ones must be of the same model.
func (s *Server) targets(p *program, pairs []suspend.Pair) (map[*use]*device, error) {
	wrong := errCode(suspend.CodeInvalidValue)
	out, named := map[*use]*device{}, map[*device]bool{}
	for _, pair := range pairs {
		from, to := s.named(pair.Old), s.named(pair.New)
		if from == nil || to == nil || from.Model != to.Model || named[to] {
			return nil, wrong
		}
		named[to] = true
		had := false
		for _, c := range p.clients {
			for _, u := range c.uses {
				if u.device == from {
					out[u], had = to, true
				}
			}
		}
		if !had {
			return nil, wrong
		}
	}
	for _, c := range p.clients {
		for _, u := range c.uses {
			switch {
			case out[u] != nil:
			case len(pairs) > 0:
				return nil, wrong
			default:
				out[u] = u.device
			}
		}
	}
	return out, nil
}

// named returns the device with a UUID.
func (s *Server) named(uuid string) *device {
	i := slices.IndexFunc(s.ledger.devices, func(d *device) bool { return strings.EqualFold(d.UUID, uuid) })
	if i < 0 {
		return nil
	}
	return s.ledger.devices[i]
}
