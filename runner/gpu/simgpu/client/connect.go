package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"carma/internal/units"

	"carma/runner/gpu/simgpu/wire"
)

// Pauses between attempts to connect.
const (
	firstWait = 50 * time.Millisecond
	lastWait  = time.Second
)

// ioLimit is the longest time to send a message, or to wait for the answer to hello. Both
// should take microseconds.
const ioLimit = 10 * time.Second

// dial connects until it succeeds, the context ends or a server refuses.
func (c *Client) dial(ctx context.Context, path string) (*reader, error) {
	for wait := firstWait; ; wait = min(2*wait, lastWait) {
		r, err := c.connect(ctx, path)
		var refused *RefusedError
		if err == nil || errors.As(err, &refused) {
			return r, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w at %s: %w", ErrNoServer, path, err)
		case <-time.After(wait):
		}
	}
}

// connect sends hello and waits for welcome and the first speed. The task continues
// meanwhile, however long the server takes.
func (c *Client) connect(ctx context.Context, path string) (*reader, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	conn.SetDeadline(time.Now().Add(ioLimit))
	r := newReader(conn)
	c.mu.Lock()
	said := c.hello()
	c.mu.Unlock()
	gpus, pace, err := greet(r, said)
	if err != nil {
		conn.Close()
		return nil, err
	}
	conn.SetDeadline(time.Time{})
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gpus == nil {
		c.gpus, c.held, c.loads = gpus, make([]units.Bytes, len(gpus)), c.loads[:len(gpus)]
	}
	c.conn = conn
	c.setPace(pace)
	c.catchUp(said)
	return r, nil
}

// hello returns the first message. The caller holds mu.
func (c *Client) hello() wire.Request {
	o := c.options
	hello := wire.Request{
		Op: wire.Hello, Version: wire.Version, Task: o.Task, Attempt: o.Attempt, Name: o.Name,
		GPUs: o.GPUs, Loads: slices.Clone(c.loads),
		ProcessState: c.state, At: c.at,
	}
	if c.gpus != nil { // the GPUs are known now and must not change
		hello.GPUs = nil
		hello.Holds = map[string]units.Bytes{}
		for i, g := range c.gpus {
			hello.GPUs = append(hello.GPUs, g.UUID)
			hello.Holds[g.UUID] = c.held[i]
		}
	}
	return hello
}

func greet(r *reader, hello wire.Request) (gpus []wire.GPU, pace wire.Reply, err error) {
	if err := wire.Write(r.conn, hello); err != nil {
		return nil, pace, err
	}
	for {
		m, err := r.next()
		switch {
		case err != nil:
			return nil, pace, err
		case m.Op == wire.Error:
			return nil, pace, &RefusedError{m.Message}
		case m.Op == wire.Welcome:
			gpus = m.GPUs
		case m.Op == wire.Pace && (len(gpus) == 0 || len(gpus) > len(hello.Loads)):
			return nil, pace, &RefusedError{fmt.Sprintf("%d GPUs for %d loads", len(gpus), len(hello.Loads))}
		case m.Op == wire.Pace:
			return gpus, m, nil
		}
	}
}

// catchUp sends the changes since hello, and an unanswered allocation, whose memory is
// not in held. The caller holds mu.
func (c *Client) catchUp(said wire.Request) {
	if !slices.Equal(said.Loads[:len(c.loads)], c.loads) {
		c.write(wire.Request{Op: wire.Loads, Loads: c.loads})
	}
	for i, g := range c.gpus {
		if freed := said.Holds[g.UUID] - c.held[i]; freed > 0 {
			c.write(wire.Request{Op: wire.Free, GPU: g.UUID, Bytes: freed})
		}
	}
	if c.call != nil {
		c.write(c.call.request)
	}
}

// run reads until the connection is lost, then connects again, until ctx ends.
func (c *Client) run(ctx context.Context, path string, r *reader) {
	for {
		stop := context.AfterFunc(ctx, func() { r.conn.Close() })
		c.read(r)
		stop()
		c.mu.Lock()
		c.conn.Close()
		c.conn = nil
		c.mu.Unlock()
		for wait := firstWait; ; wait = min(2*wait, lastWait) {
			select {
			case <-ctx.Done():
				return
			case <-time.After(wait):
			}
			var err error
			// A server that refuses this client now may be starting with another configuration.
			// The client retries, as if the server were gone.
			if r, err = c.connect(ctx, path); err == nil {
				break
			}
		}
	}
}

func (c *Client) read(r *reader) {
	for {
		m, err := r.next()
		if err != nil {
			return
		}
		c.mu.Lock()
		switch m.Op {
		case wire.Pace:
			c.setPace(m)
		case wire.State:
			c.setState(m)
		case wire.OK, wire.OOM:
			c.answer(m)
		}
		c.mu.Unlock()
	}
}

// reader decodes a server's messages.
type reader struct {
	conn  net.Conn
	lines interface {
		Scan() bool
		Bytes() []byte
		Err() error
	}
}

func newReader(conn net.Conn) *reader { return &reader{conn, wire.Lines(conn)} }

func (r *reader) next() (m wire.Reply, err error) {
	if !r.lines.Scan() {
		return m, errors.Join(errors.New("connection lost"), r.lines.Err())
	}
	if err := json.Unmarshal(r.lines.Bytes(), &m); err != nil {
		return m, fmt.Errorf("message of the simulated GPU server: %w", err)
	}
	return m, nil
}
