// Package client is a task's side of a simulated GPU server: it allocates and frees
// memory and receives the speed of the task. It outlives the server: without a server the
// task continues at its last speed, and the client reports the task's memory to the next
// server.
package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/gpu/simgpu/wire"
)

// ErrNoServer means that nobody serves GPUs in that folder.
var ErrNoServer = errors.New("no simulated GPU server")

// RefusedError is a server's reason for refusing a task.
type RefusedError struct{ Message string }

func (e *RefusedError) Error() string { return "refused by the simulated GPU server: " + e.Message }

// OOMError means that a GPU has no room for an allocation.
type OOMError struct {
	GPU   int         // index in Client.GPUs
	Asked units.Bytes // the refused amount
	Total units.Bytes // memory of the GPU
	Free  units.Bytes // free memory of the GPU
	Held  units.Bytes // memory of this client there
}

func (e *OOMError) Error() string {
	return fmt.Sprintf("GPU %d has no room for %s: %s of %s free", e.GPU, e.Asked, e.Free, e.Total)
}

// Options describe the task and its needs.
type Options struct {
	Dir     string       // folder of the server's socket
	Task    model.TaskID // 0 for a process that does not belong to carma
	Attempt int
	Name    string
	GPUs    []string // as in NVIDIA_VISIBLE_DEVICES
	Loads   []wire.Load
	// Window is the time for which Dial tries to connect; later reconnects have no limit.
	Window time.Duration
}

// Client is a connection that reconnects when it is lost. It is safe for concurrent use.
type Client struct {
	options Options
	gpus    []wire.GPU
	changed chan struct{}
	cancel  context.CancelFunc
	done    chan struct{}
	calls   sync.Mutex // one Alloc at a time

	mu     sync.Mutex // guards the fields below, and writes to conn
	conn   net.Conn   // nil while there is no server
	loads  []wire.Load
	held   []units.Bytes // by GPU
	pace   Pace          // last value from the server
	passed Passed        // up to since
	since  time.Time
	state  int               // wire.Running and so on
	at     map[string]string // GPUs to which the server has moved it
	lastID int64
	call   *call // the Alloc in progress
}

// Pace is the speed of the task.
type Pace struct {
	// Training is the number of seconds of training, as if alone on an A100, per second of
	// wall-clock time.
	Training float64
	// Speed is the number of simulated seconds per second of wall-clock time.
	Speed float64
}

// Passed is the work of a task since it first connected. A suspended task does not train,
// even if its process was stopped before it learned of the suspension.
type Passed struct {
	Training float64 // seconds of training, as if alone on an A100
	Clock    float64 // simulated seconds
}

// call is an Alloc that waits for its answer.
type call struct {
	request wire.Request
	gpu     int
	answer  chan error // buffer of one
}

// Dial connects. It tries for options.Window, because a server may still be starting. The
// error wraps ErrNoServer or is a *RefusedError. Close ends the client.
func Dial(ctx context.Context, options Options) (*Client, error) {
	c := &Client{
		options: options, loads: slices.Clone(options.Loads),
		changed: make(chan struct{}, 1), done: make(chan struct{}),
	}
	path := filepath.Join(options.Dir, wire.Socket)
	window, cancel := context.WithTimeout(ctx, options.Window)
	defer cancel()
	r, err := c.dial(window, path)
	if err != nil {
		return nil, err
	}
	run, stop := context.WithCancel(context.Background())
	c.cancel = stop
	go func() {
		defer close(c.done)
		c.run(run, path, r)
	}()
	return c, nil
}

// setPace stores a new speed. The caller holds mu.
func (c *Client) setPace(m wire.Reply) {
	c.pass()
	c.pace = Pace{m.Pace, m.Speed}
	c.tell()
}

// setState applies the server's state of the whole process, and answers afterwards. The
// caller holds mu.
func (c *Client) setState(m wire.Reply) {
	c.pass()
	c.state, c.at = m.ProcessState, m.At
	c.write(wire.Request{Op: wire.Done, ID: m.ID})
	c.tell()
}

// tell wakes the goroutines that wait for a change of speed.
func (c *Client) tell() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// pass updates Passed up to now. The caller holds mu, before every change of the speed.
func (c *Client) pass() {
	now := time.Now()
	if !c.since.IsZero() {
		seconds := now.Sub(c.since).Seconds()
		c.passed.Training += seconds * c.now().Training
		c.passed.Clock += seconds * c.pace.Speed
	}
	c.since = now
}

// now returns the present speed of the task. The caller holds mu.
func (c *Client) now() Pace {
	p := c.pace
	if c.state != wire.Running {
		p.Training = 0
	}
	return p
}

// answer counts an allocation at once, so that the next hello declares it. The caller
// holds mu.
func (c *Client) answer(m wire.Reply) {
	if c.call == nil || c.call.request.ID != m.ID {
		return
	}
	var err error
	if m.Op == wire.OK {
		c.held[c.call.gpu] += c.call.request.Bytes
	} else {
		err = &OOMError{GPU: c.call.gpu, Asked: c.call.request.Bytes, Total: m.Total, Free: m.Free, Held: m.Held}
	}
	c.call.answer <- err
	c.call = nil
}

// GPUs returns the devices on which the task computes.
func (c *Client) GPUs() []wire.GPU { return slices.Clone(c.gpus) }

// Pace returns the last speed received, or a speed without training while the process is
// suspended.
func (c *Client) Pace() Pace {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now()
}

// Passed returns the training up to now.
func (c *Client) Passed() Passed {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pass()
	return c.passed
}

// Changed receives a value after the speed has changed.
func (c *Client) Changed() <-chan struct{} { return c.changed }

// Held returns the task's memory on one of its GPUs.
func (c *Client) Held(gpu int) units.Bytes {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held[gpu]
}

// Alloc allocates memory on one of the task's GPUs. It waits for a server if there is
// none. The error is an *OOMError, or the context's. In the latter case the server may
// have allocated the memory, and the client may only be closed.
func (c *Client) Alloc(ctx context.Context, gpu int, n units.Bytes) error {
	c.calls.Lock()
	defer c.calls.Unlock()
	c.mu.Lock()
	c.lastID++
	me := &call{
		request: wire.Request{Op: wire.Alloc, ID: c.lastID, GPU: c.gpus[gpu].UUID, Bytes: n},
		gpu:     gpu, answer: make(chan error, 1),
	}
	c.call = me
	c.write(me.request)
	c.mu.Unlock()
	select {
	case err := <-me.answer:
		return err
	case <-ctx.Done():
		c.mu.Lock()
		c.call = nil
		c.mu.Unlock()
		return fmt.Errorf("allocate %s on GPU %d: %w", n, gpu, context.Cause(ctx))
	}
}

// Free frees memory. It does not wait.
func (c *Client) Free(gpu int, n units.Bytes) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n = min(n, c.held[gpu])
	c.held[gpu] -= n
	c.lastID++
	c.write(wire.Request{Op: wire.Free, ID: c.lastID, GPU: c.gpus[gpu].UUID, Bytes: n})
}

// SetLoads sets the task's load on its GPUs from now on; no loads means idle. It does not
// wait.
func (c *Client) SetLoads(loads []wire.Load) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.loads = make([]wire.Load, len(c.gpus))
	copy(c.loads, loads)
	c.write(wire.Request{Op: wire.Loads, Loads: c.loads})
}

// write sends a message if there is a server. A lost message is not repeated, because the
// next hello declares the state after it. The caller holds mu.
func (c *Client) write(m wire.Request) {
	if c.conn == nil {
		return
	}
	c.conn.SetWriteDeadline(time.Now().Add(ioLimit))
	if err := wire.Write(c.conn, m); err != nil {
		c.conn.Close() // ends read
	}
}

// Close frees everything and waits until all goroutines of the client have ended.
func (c *Client) Close() {
	c.cancel()
	<-c.done
}
