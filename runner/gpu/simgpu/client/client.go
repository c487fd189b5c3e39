// Package client is a task's side of a simulated GPU server: it takes and frees memory and
// receives the pace of the task. It outlives the server: without a server the task
// continues at its last pace, and the client reports the task's memory to the next server.
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

// ErrNoServer: nobody serves GPUs in that folder.
var ErrNoServer = errors.New("no simulated GPU server")

// RefusedError is a server's reason for turning a task down.
type RefusedError struct{ Message string }

func (e *RefusedError) Error() string { return "refused by the simulated GPU server: " + e.Message }

// OOMError says that a GPU has no room for an allocation.
type OOMError struct {
	GPU   int         // which of Client.GPUs
	Asked units.Bytes // the refused amount
	Total units.Bytes // of the GPU
	Free  units.Bytes // on the GPU
	Held  units.Bytes // by this client there
}

func (e *OOMError) Error() string {
	return fmt.Sprintf("GPU %d has no room for %s: %s of %s free", e.GPU, e.Asked, e.Free, e.Total)
}

// Options describe the task and its needs.
type Options struct {
	Dir     string       // folder of the server's socket
	Task    model.TaskID // 0 for a process that is not one of carma's
	Attempt int
	Name    string
	GPUs    []string // as in NVIDIA_VISIBLE_DEVICES
	Loads   []wire.Load
	// Window is the time for which Dial tries; later reconnects have no limit.
	Window time.Duration
}

// Client is a connection that reconnects when it is lost. Methods may be called from
// several goroutines.
type Client struct {
	options Options
	gpus    []wire.GPU
	changed chan struct{}
	cancel  context.CancelFunc
	done    chan struct{}
	calls   sync.Mutex // one Alloc at a time

	mu     sync.Mutex // guards the fields below, and writing to conn
	conn   net.Conn   // nil while there is no server
	loads  []wire.Load
	held   []units.Bytes // by GPU
	pace   Pace          // as the server has said
	passed Passed        // until since
	since  time.Time
	state  int               // wire.Running and so on
	at     map[string]string // where the server has moved it to
	lastID int64
	call   *call // the Alloc in progress
}

// Pace is the speed of the task.
type Pace struct {
	// Training is seconds of training, as if alone on an A100, per second of
	// wall clock.
	Training float64
	// Speed is simulated seconds per second of wall clock.
	Speed float64
}

// Passed is the work of a task since it first connected. Nothing is trained while it is
// suspended, even if the process was stopped before it saw that.
type Passed struct {
	Training float64 // seconds of training, as if alone on an A100
	Clock    float64 // simulated seconds
}

// call is an Alloc waiting for its answer.
type call struct {
	request wire.Request
	gpu     int
	answer  chan error // has room for one
}

// Dial connects, trying for options.Window: a server may still be starting.
// It returns an error wrapping ErrNoServer or a *RefusedError. Close ends it.
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

// setPace is called with mu held.
func (c *Client) setPace(m wire.Reply) {
	c.pass()
	c.pace = Pace{m.Pace, m.Speed}
	c.tell()
}

// setState applies the server's state of the whole process, and answers when it is done. It
// is called with mu held.
func (c *Client) setState(m wire.Reply) {
	c.pass()
	c.state, c.at = m.ProcessState, m.At
	c.write(wire.Request{Op: wire.Done, ID: m.ID})
	c.tell()
}

// tell wakes the goroutines that wait for a change of pace.
func (c *Client) tell() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// pass updates Passed up to now. It is called with mu held, before every change of the
// pace.
func (c *Client) pass() {
	now := time.Now()
	if !c.since.IsZero() {
		seconds := now.Sub(c.since).Seconds()
		c.passed.Training += seconds * c.now().Training
		c.passed.Clock += seconds * c.pace.Speed
	}
	c.since = now
}

// now returns the present pace of the task. It is called with mu held.
func (c *Client) now() Pace {
	p := c.pace
	if c.state != wire.Running {
		p.Training = 0
	}
	return p
}

// answer counts an allocation at once, so that the next hello declares it. It is called
// with mu held.
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

// GPUs returns the devices the task computes on.
func (c *Client) GPUs() []wire.GPU { return slices.Clone(c.gpus) }

// Pace returns the last pace received. While the process is suspended it does not train.
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

// Changed gets a value after the pace has changed.
func (c *Client) Changed() <-chan struct{} { return c.changed }

// Held returns the task's memory on one of its GPUs.
func (c *Client) Held(gpu int) units.Bytes {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held[gpu]
}

// Alloc takes memory on one of the task's GPUs. It waits for a server if there
// is none. The error is an *OOMError, or the context's; after the latter the
// server may have given the memory, and the client is fit for closing only.
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

// Free gives memory back; it does not wait.
func (c *Client) Free(gpu int, n units.Bytes) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n = min(n, c.held[gpu])
	c.held[gpu] -= n
	c.lastID++
	c.write(wire.Request{Op: wire.Free, ID: c.lastID, GPU: c.gpus[gpu].UUID, Bytes: n})
}

// SetLoads says how busy the task keeps its GPUs from now on; no loads: not at
// all. It does not wait.
func (c *Client) SetLoads(loads []wire.Load) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.loads = make([]wire.Load, len(c.gpus))
	copy(c.loads, loads)
	c.write(wire.Request{Op: wire.Loads, Loads: c.loads})
}

// write sends a message if there is a server. A lost message is not repeated: the next
// hello declares the state after it. It is called with mu held.
func (c *Client) write(m wire.Request) {
	if c.conn == nil {
		return
	}
	c.conn.SetWriteDeadline(time.Now().Add(ioLimit))
	if err := wire.Write(c.conn, m); err != nil {
		c.conn.Close() // ends read
	}
}

// Close frees everything and waits until nothing of the client runs.
func (c *Client) Close() {
	c.cancel()
	<-c.done
}
