package simgpu

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"carma/mapper/sim"
	"carma/runner/gpu/simgpu/wire"
	"carma/runner/suspend"
)

// helloLimit is the time after which a new connection without a hello is closed.
const helloLimit = 10 * time.Second

// serve handles one connection, from hello to its end.
func (s *Server) serve(c *net.UnixConn) {
	lines := wire.Lines(c)
	c.SetReadDeadline(time.Now().Add(helloLimit))
	if !lines.Scan() {
		return
	}
	var hello wire.Request
	if err := json.Unmarshal(lines.Bytes(), &hello); err != nil {
		s.refuse(c, errors.New("the first line is no message"))
		return
	}
	cl, err := s.process(hello)
	if err != nil {
		s.refuse(c, err)
		return
	}
	cl.pid = peerPID(c)
	welcome := wire.Reply{Op: wire.Welcome}
	for _, u := range cl.uses {
		welcome.GPUs = append(welcome.GPUs, wire.GPU{UUID: u.device.UUID, Index: u.device.Index, Model: u.device.Model, Total: u.device.Memory})
	}
	c.SetReadDeadline(time.Time{})
	out := newOutbox(c)
	out.send(welcome)
	cl.paced, cl.tell = out.pace, out.state
	s.settled(cl.pid)
	s.change(func(l *ledger) { l.join(cl); s.tellAll() })
	s.log.Debug().Int64("task", int64(cl.task)).Int("attempt", cl.attempt).Int("pid", cl.pid).Msg("process on simulated GPUs")

	s.work.Add(1)
	go func() {
		defer s.work.Done()
		out.run()
	}()
	in := s.listen(cl, lines)
	for r := range in.requests {
		answer, err := s.handle(cl, r, in.gone)
		if err != nil {
			out.send(wire.Reply{Op: wire.Error, Message: err.Error()})
			break
		}
		if answer.Op != "" && !out.send(answer) {
			break
		}
	}
	s.change(func(l *ledger) { l.leave(cl); s.tellAll() })
	out.finish()
	for range in.requests { // its reader ends with the connection
	}
}

func (s *Server) refuse(c *net.UnixConn, err error) {
	c.SetWriteDeadline(time.Now().Add(writeLimit))
	wire.Write(c, wire.Reply{Op: wire.Error, Message: err.Error()}) // the client disconnects anyway
	s.log.Debug().Err(err).Msg("process refused on simulated GPUs")
}

// process checks a hello. The result is not in the ledger yet.
func (s *Server) process(hello wire.Request) (*process, error) {
	switch {
	case hello.Op != wire.Hello:
		return nil, fmt.Errorf("%q before hello", hello.Op)
	case hello.Version != wire.Version:
		return nil, fmt.Errorf("protocol version %d; this daemon speaks %d", hello.Version, wire.Version)
	case hello.Task < 0 || hello.Attempt < 0:
		return nil, errors.New("task and attempt cannot be negative")
	}
	devices, err := s.visible(hello.GPUs)
	if err != nil {
		return nil, err
	}
	devices = devices[:min(len(devices), len(hello.Loads))]
	if len(devices) == 0 {
		return nil, errors.New("no GPU is visible")
	}
	if hello.ProcessState < wire.Running || hello.ProcessState > wire.Checkpointed {
		return nil, fmt.Errorf("state %d; this daemon knows 0 to 2", hello.ProcessState)
	}
	c := &process{task: hello.Task, attempt: hello.Attempt, said: suspend.State(hello.ProcessState)}
	for i, d := range devices {
		load, err := loadOf(hello.Loads[i])
		if err != nil {
			return nil, err
		}
		held := hello.Holds[d.UUID]
		if held < 0 || held > d.Memory {
			return nil, fmt.Errorf("holds %d bytes of the %d of %s", held, d.Memory, d.UUID)
		}
		u := &use{process: c, name: d.UUID, device: d, load: load, held: held}
		if at := hello.At[u.name]; at != "" {
			if u.device = s.named(at); u.device == nil {
				return nil, fmt.Errorf("it was moved to %q, which is no GPU of this server", at)
			}
		}
		c.uses = append(c.uses, u)
	}
	for i, u := range c.uses {
		if slices.ContainsFunc(c.uses[:i], func(o *use) bool { return o.device == u.device }) {
			return nil, fmt.Errorf("it was moved to GPU %s twice", u.device.UUID)
		}
	}
	return c, nil
}

// visible resolves a list as in NVIDIA_VISIBLE_DEVICES.
func (s *Server) visible(names []string) ([]*device, error) {
	var found []*device
	for _, name := range names {
		name = strings.TrimSpace(name)
		switch name {
		case "all":
			return s.ledger.devices, nil
		case "", "none", "void":
			continue
		}
		d, err := s.device(name)
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			if f == d {
				return nil, fmt.Errorf("GPU %s is listed twice", name)
			}
		}
		found = append(found, d)
	}
	return found, nil
}

func (s *Server) device(name string) (*device, error) {
	var found *device
	index, err := strconv.Atoi(name)
	for _, d := range s.ledger.devices {
		if err == nil && d.Index == index {
			return d, nil
		}
		if len(name) > len("GPU-") && len(name) <= len(d.UUID) && strings.EqualFold(d.UUID[:len(name)], name) {
			if found != nil {
				return nil, fmt.Errorf("%q is the beginning of two GPUs", name)
			}
			found = d
		}
	}
	if found == nil {
		return nil, fmt.Errorf("no GPU %q on this server", name)
	}
	return found, nil
}

func loadOf(l wire.Load) (sim.Load, error) {
	for _, f := range []float64{l.SMACT, l.SMOCC, l.DRAMA} {
		if !(f >= 0 && f <= 1) { // also excludes NaN
			return sim.Load{}, fmt.Errorf("load %v is not between 0 and 1", f)
		}
	}
	if !(l.Step >= 0) || math.IsInf(l.Step, 0) {
		return sim.Load{}, fmt.Errorf("step of %v seconds", l.Step)
	}
	return sim.Load(l), nil
}

// handle carries out a client's request while the client runs: the requests of a locked
// client wait. An error ends the connection. gone is closed when the client has
// disconnected.
func (s *Server) handle(c *process, r request, gone <-chan struct{}) (wire.Reply, error) {
	switch {
	case r.err != nil:
		return wire.Reply{}, r.err
	case r.Op == wire.Alloc || r.Op == wire.Free:
		return s.memory(c, r.Request, gone)
	case r.Op == wire.Loads:
		return wire.Reply{}, s.loads(c, r.Loads, gone)
	}
	return wire.Reply{}, fmt.Errorf("unknown operation %q", r.Op)
}

func (s *Server) memory(c *process, r wire.Request, gone <-chan struct{}) (wire.Reply, error) {
	u := c.on(r.GPU)
	if u == nil {
		return wire.Reply{}, fmt.Errorf("no GPU %q here", r.GPU)
	}
	if r.Bytes < 0 {
		return wire.Reply{}, fmt.Errorf("%s of %d bytes", r.Op, r.Bytes)
	}
	if r.Op == wire.Alloc { // only this client's next request waits for it
		select {
		case <-s.admitting:
		case <-s.stopping:
			return wire.Reply{}, net.ErrClosed
		}
	}
	reply := wire.Reply{Op: wire.OK, ID: r.ID}
	err := s.whenRunning(c, gone, func(l *ledger) {
		if r.Op == wire.Free {
			u.free(r.Bytes)
		} else if !l.alloc(u, r.Bytes) {
			total := u.device.Memory
			reply = wire.Reply{Op: wire.OOM, ID: r.ID, Total: total, Free: max(0, total-u.device.used()), Held: u.held}
		}
	})
	if reply.Op == wire.OOM {
		s.log.Debug().Int64("task", int64(c.task)).Str("gpu", r.GPU).Stringer("asked", r.Bytes).Stringer("free", reply.Free).Msg("simulated GPU out of memory")
	}
	return reply, err
}

func (s *Server) loads(c *process, loads []wire.Load, gone <-chan struct{}) error {
	if len(loads) < len(c.uses) {
		return fmt.Errorf("%d loads for %d GPUs", len(loads), len(c.uses))
	}
	var checked []sim.Load
	for i := range c.uses {
		l, err := loadOf(loads[i])
		if err != nil {
			return err
		}
		checked = append(checked, l)
	}
	return s.whenRunning(c, gone, func(l *ledger) {
		for i, u := range c.uses {
			u.load = checked[i]
		}
		l.settle()
	})
}
