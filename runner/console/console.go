package console

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"carma/containers"
	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/clock"
	"carma/runner/engine"
	"carma/runner/gpu"
	"carma/runner/tasklog"

	"github.com/rs/zerolog"
)

const (
	// recentBytes is the amount of a terminal's latest output that a new viewer gets.
	recentBytes = 32 << 10
	// recentLines is the number of stored lines that a viewer gets instead after a restart.
	recentLines = 50
	// unseen is the output that may queue for a terminal that reads nothing. The program
	// then waits unseenFor before that terminal is disconnected.
	unseen    = 64 // pieces of at most 32 KiB
	unseenFor = 10 * time.Second
	// connectAgain is the pause before a broken connection to a program is restored.
	connectAgain = 500 * time.Millisecond
	// lastOutput limits the wait for an ended program's last output.
	lastOutput = 2 * time.Second
	// touchEvery is the shortest time between two reports of input to the mapper.
	touchEvery = time.Minute
)

// Console is a running container with its terminal or input, if it has one. The
// daemon is always connected, so that no prompt is lost and nobody who is attached
// can keep the program waiting for long.
type Console struct {
	key gpu.AttemptKey
	id  string // of the container
	tty bool
	// talks is set if the container has a terminal or an input.
	talks bool
	clock *clock.Clock
	touch func(model.TerminalInput)

	mu      sync.Mutex
	session containers.Session // nil while not connected
	joined  chan struct{}      // closed and replaced when session changes
	recent  []byte             // latest output, of a terminal only
	viewers map[*viewer]bool
	over    bool
	touched units.Instant // when input was last reported
}

// Options describe the container of an attempt.
type Options struct {
	Key      gpu.AttemptKey
	ID       string // of the container
	Terminal bool
	Input    bool // it reads an input
	// Resumed is set if an earlier daemon started the container: its latest output is read
	// from Logs.
	Resumed bool
	Driver  containers.Driver
	Logs    *tasklog.Store
	Clock   *clock.Clock
	Log     zerolog.Logger
	// Touch reports that somebody types. It is called at most once a minute.
	Touch func(model.TerminalInput)
}

// Open registers a container, and connects to its program if the program has a terminal or
// an input. A connection made before the program's start loses no output. The returned
// function waits for the program's last output, and ends the connection.
func (c *Registry) Open(ctx context.Context, opt Options) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	one := &Console{
		key: opt.Key, id: opt.ID, tty: opt.Terminal, talks: opt.Terminal || opt.Input, clock: opt.Clock,
		touch: opt.Touch, joined: make(chan struct{}), viewers: map[*viewer]bool{},
	}
	var done sync.WaitGroup
	if driver, can := engine.As[containers.Terminals](opt.Driver); can && one.talks {
		if opt.Resumed && one.tty {
			one.recall(ctx, &opt)
		}
		session, err := driver.Attach(ctx, opt.ID)
		if err != nil && !errors.Is(err, containers.ErrNotFound) && ctx.Err() == nil {
			opt.Log.Warn().Err(err).Int64("task", int64(opt.Key.Task)).Msg("no connection with the task's terminal; trying again")
		}
		done.Go(func() { one.run(ctx, driver, session) })
	}
	c.set(opt.Key.Task, one)
	return sync.OnceFunc(func() {
		c.set(opt.Key.Task, nil)
		over := make(chan struct{})
		go func() { defer close(over); done.Wait() }()
		select {
		case <-over:
		case <-ctx.Done():
		case <-time.After(lastOutput):
		}
		cancel()
		<-over
		one.finish()
	})
}

// Key returns the attempt.
func (c *Console) Key() gpu.AttemptKey { return c.key }

// ID returns the container's ID.
func (c *Console) ID() string { return c.id }

// Talks reports whether the program has a terminal or an input.
func (c *Console) Talks() bool { return c.talks }

// recall loads the end of the output that an earlier daemon stored, and the engine's output
// after that time.
func (c *Console) recall(ctx context.Context, opt *Options) {
	lines, err := opt.Logs.Tail(int64(c.key.Task), c.key.Attempt, recentLines)
	if err != nil {
		return
	}
	add := func(text []byte, partial bool) {
		c.recent = append(c.recent, text...)
		if !partial {
			c.recent = append(c.recent, "\r\n"...)
		}
		if n := len(c.recent); n > 2*recentBytes {
			c.recent = bytes.Clone(c.recent[n-recentBytes:])
		}
	}
	var last time.Time
	for _, l := range lines {
		add(l.Text, l.Partial)
		last = l.At
	}
	ctx, enough := context.WithTimeout(ctx, lastOutput)
	defer enough()
	err = opt.Driver.Logs(ctx, c.id, last, false, func(_ time.Time, _ containers.Stream, line []byte, partial bool) {
		add(bytes.TrimSuffix(line, []byte("\r")), partial)
	})
	if err != nil {
		opt.Log.Debug().Err(err).Int64("task", int64(c.key.Task)).Msg("what the terminal showed at last is not known")
	}
}

// run copies the program's output until it has ended or ctx ends. It restores a broken
// connection.
func (c *Console) run(ctx context.Context, driver containers.Terminals, session containers.Session) {
	for {
		if session != nil {
			c.join(session)
			stop := context.AfterFunc(ctx, func() { _ = session.Close() })
			_ = session.Copy(c, c) // a broken connection is restored
			stop()
			_ = session.Close()
			c.join(nil)
		}
		if ctx.Err() != nil {
			return
		}
		var err error
		if session, err = driver.Attach(ctx, c.id); err == nil {
			continue
		}
		if errors.Is(err, containers.ErrNotFound) {
			c.finish()
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(connectAgain):
		}
	}
}

func (c *Console) join(session containers.Session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.session = session
	close(c.joined)
	c.joined = make(chan struct{})
}

// finish disconnects all viewers after the program has ended.
func (c *Console) finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return
	}
	c.over = true
	close(c.joined)
	c.joined = make(chan struct{})
	for v := range c.viewers {
		close(v.output)
	}
	c.viewers = nil
}

// connected waits for a connection to the program. It returns nil if the program has ended
// or the caller has left.
func (c *Console) connected(ctx context.Context) containers.Session {
	for {
		c.mu.Lock()
		session, joined, over := c.session, c.joined, c.over
		c.mu.Unlock()
		if session != nil || over {
			return session
		}
		select {
		case <-joined:
		case <-ctx.Done():
			return nil
		}
	}
}

// input passes typed data to the program.
func (c *Console) input(ctx context.Context, data []byte) error {
	c.Touch()
	session := c.connected(ctx)
	if session == nil {
		return io.ErrClosedPipe
	}
	_, err := session.Write(data)
	return err
}

// endInput ends the input. It has no effect on a terminal.
func (c *Console) endInput(ctx context.Context) {
	if session := c.connected(ctx); session != nil && !c.tty {
		_ = session.CloseWrite() // it fails if the program has ended
	}
}

func (c *Console) resize(ctx context.Context, to api.TerminalSize) {
	if session := c.connected(ctx); session != nil && to != (api.TerminalSize{}) {
		_ = session.Resize(ctx, containers.Size(to)) // a failure affects only the program's display
	}
}

// Touch reports input to the mapper, at most every touchEvery.
func (c *Console) Touch() {
	now := c.clock.Now()
	c.mu.Lock()
	tell := c.touched == 0 || now.Sub(c.touched) >= touchEvery
	if tell {
		c.touched = now
	}
	c.mu.Unlock()
	if tell {
		c.touch(model.TerminalInput{At: now, Task: c.key.Task})
	}
}

// say shows a line of carma's to everybody who is attached.
func (c *Console) say(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for v := range c.viewers {
		select {
		case v.output <- []byte("\r\ncarma: " + text + "\r\n"):
		default: // the viewer's queue is full
		}
	}
}
