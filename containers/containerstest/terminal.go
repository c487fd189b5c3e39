package containerstest

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"syscall"

	"carma/containers"
)

// flow carries bytes from writers to one reader. It never blocks a writer.
type flow struct {
	mu    sync.Mutex
	more  sync.Cond
	data  []byte
	ended bool
}

func newFlow() *flow {
	f := &flow{}
	f.more.L = &f.mu
	return f
}

func (f *flow) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return 0, io.ErrClosedPipe
	}
	f.data = append(f.data, p...)
	f.more.Broadcast()
	return len(p), nil
}

func (f *flow) Read(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.data) == 0 && !f.ended {
		f.more.Wait()
	}
	if len(f.data) == 0 {
		return 0, io.EOF
	}
	n := copy(p, f.data)
	f.data = f.data[n:]
	return n, nil
}

func (f *flow) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
	f.more.Broadcast()
	return nil
}

// screen is a program's terminal, or its input and output without a terminal.
type screen struct {
	tty   bool
	input *flow // nil if the program has no input

	mu      sync.Mutex
	size    containers.Size
	resized chan struct{} // closed and replaced when the size changes
	viewers []*fakeSession
	over    bool
}

func newScreen(stdin, tty bool) *screen {
	s := &screen{tty: tty, resized: make(chan struct{})}
	if stdin || tty {
		s.input = newFlow()
	}
	return s
}

// Size returns the size of the program's terminal and a channel that is closed when it
// changes, or false if it has no terminal.
func (s *screen) Size() (containers.Size, <-chan struct{}, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.size, s.resized, s.tty
}

func (s *screen) show(stream containers.Stream, p []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tty {
		stream = containers.Stdout
	}
	for _, v := range s.viewers {
		switch {
		case v.only != 0 && v.only != stream:
		case stream == containers.Stderr:
			_, _ = v.stderr.Write(p)
		default:
			_, _ = v.stdout.Write(p)
		}
	}
}

// end ends the input and all sessions.
func (s *screen) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	if s.input != nil {
		_ = s.input.Close()
	}
	for _, v := range s.viewers {
		v.finish()
	}
}

// join adds a session with one of the streams, or with both and the input if only is 0.
func (s *screen) join(only containers.Stream) *fakeSession {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := &fakeSession{screen: s, only: only, stdout: newFlow(), stderr: newFlow()}
	s.viewers = append(s.viewers, v)
	if s.over {
		v.finish()
	}
	return v
}

// shown also sends a program's output to its sessions.
type shown struct {
	io.Writer
	screen *screen
	stream containers.Stream
}

func (w *shown) Write(p []byte) (int, error) {
	w.screen.show(w.stream, p)
	return w.Writer.Write(p)
}

// fakeSession is a connection to a script.
type fakeSession struct {
	screen         *screen
	only           containers.Stream // 0 for both, and the input
	stdout, stderr *flow

	// Set for commands.
	stop  context.CancelFunc
	kill  func()
	ended chan struct{}
	code  int // valid when ended is closed
}

func (v *fakeSession) finish() { _, _ = v.stdout.Close(), v.stderr.Close() }

// Copy passes on the output.
func (v *fakeSession) Copy(stdout, stderr io.Writer) error {
	both := make(chan error, 1)
	go func() { _, err := io.Copy(stderr, v.stderr); both <- err }()
	_, err := io.Copy(stdout, v.stdout)
	if other := <-both; err == nil {
		err = other
	}
	return err
}

// Write sends input to the script.
func (v *fakeSession) Write(p []byte) (int, error) {
	if v.screen.input == nil || v.only != 0 {
		return 0, io.ErrClosedPipe
	}
	return v.screen.input.Write(p)
}

// CloseWrite ends the input, unless it is a terminal.
func (v *fakeSession) CloseWrite() error {
	if v.screen.tty || v.screen.input == nil || v.only != 0 {
		return nil
	}
	return v.screen.input.Close()
}

// Resize sets the size of the terminal.
func (v *fakeSession) Resize(_ context.Context, to containers.Size) error {
	v.screen.mu.Lock()
	defer v.screen.mu.Unlock()
	if v.screen.tty && to != v.screen.size {
		v.screen.size = to
		close(v.screen.resized)
		v.screen.resized = make(chan struct{})
	}
	return nil
}

// Close ends the session. As with Docker, an input without a terminal ends with it.
func (v *fakeSession) Close() error {
	v.screen.mu.Lock()
	v.screen.viewers = slices.DeleteFunc(v.screen.viewers, func(x *fakeSession) bool { return x == v })
	v.screen.mu.Unlock()
	v.finish()
	return v.CloseWrite()
}

// Signal ends the command's context. SIGKILL also closes its Killed channel.
func (v *fakeSession) Signal(_ context.Context, s syscall.Signal) error {
	v.stop()
	if s == syscall.SIGKILL {
		v.kill()
	}
	return nil
}

// Wait returns the command's exit code.
func (v *fakeSession) Wait(ctx context.Context) (int, error) {
	select {
	case <-v.ended:
		return v.code, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// Attach connects to a container's script.
func (f *Fake) Attach(ctx context.Context, id string) (containers.Session, error) {
	return f.attach(ctx, id, 0)
}

// AttachOutput connects to one of a script's streams.
func (f *Fake) AttachOutput(ctx context.Context, id string, stream containers.Stream) (containers.Session, error) {
	return f.attach(ctx, id, stream)
}

func (f *Fake) attach(ctx context.Context, id string, only containers.Stream) (containers.Session, error) {
	if _, err := f.call(ctx, OpAttach); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	c, err := f.get("attach to", id)
	if err != nil {
		return nil, err
	}
	if c.state == containers.StateExited || c.exit.Error != "" {
		return nil, fmt.Errorf("attach to container %s: %w: it has ended", id, containers.ErrNotFound)
	}
	return c.screen.join(only), nil
}

// Exec runs the image's Exec script, or its Run script, with other arguments.
func (f *Fake) Exec(ctx context.Context, id string, cmd containers.Command) (containers.ExecSession, error) {
	if _, err := f.call(ctx, OpExec); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	what := "run a command in container " + id
	c, err := f.get("run a command in", id)
	if err != nil {
		return nil, err
	}
	if c.state != containers.StateRunning {
		return nil, fmt.Errorf("%s: %w: it does not run", what, containers.ErrNotFound)
	}
	run := c.image.Exec
	if run == nil {
		run = c.image.Run
	}
	if c.image.Programs != nil && !slices.Contains(c.image.Programs, cmd.Args[0]) || run == nil {
		return nil, fmt.Errorf("%s: %w: exec %q: executable file not found", what, containers.ErrInvalid, cmd.Args[0])
	}
	spec := c.resolve()
	spec.Entrypoint, spec.Command = cmd.Args[:1], cmd.Args[1:]
	spec.Env = append(slices.Clip(spec.Env), cmd.Env...)
	if cmd.WorkDir != "" {
		spec.WorkDir = cmd.WorkDir
	}
	screen := newScreen(cmd.Stdin, cmd.TTY)
	screen.size = cmd.Size
	v := screen.join(0)
	v.ended = make(chan struct{})
	running, stop := context.WithCancel(context.Background())
	killed := make(chan struct{})
	v.stop, v.kill = stop, sync.OnceFunc(func() { close(killed) })
	p := &Process{Spec: spec, Killed: killed, screen: screen}
	p.Stdout = &shown{io.Discard, screen, containers.Stdout}
	p.Stderr = &shown{io.Discard, screen, containers.Stderr}
	end, ended := c.killed, v.ended
	f.scripts.Go(func() { // the command ends with the container
		select {
		case <-end:
			stop()
			v.kill()
		case <-ended:
		}
	})
	f.scripts.Go(func() {
		defer stop()
		v.code = run(running, p)
		screen.end()
		close(v.ended)
	})
	return v, nil
}
