package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/client"
	"golang.org/x/sys/unix"

	"carma/containers"
)

var _ containers.OutputAttacher = (*Driver)(nil)

// session is a connection to a container's program, or to a command in it.
type session struct {
	e         *engine
	cli       *client.Client
	conn      client.HijackedResponse
	tty       bool
	container string
	close     func()
	exec      string // id of a command
}

// The keys with which the engine detaches a session; it requires some. The default is
// ctrl-p ctrl-q: the engine withholds ctrl-p until the next key arrives, and carma has
// its own keys. noKeys is a byte that never occurs in UTF-8 text. Requests for commands
// are JSON, which is UTF-8, so rareKeys is ctrl-^ many times.
const (
	noKeys   = "\xff,\xff,\xff,\xff"
	rareKeys = "ctrl-^,ctrl-^,ctrl-^,ctrl-^,ctrl-^,ctrl-^,ctrl-^,ctrl-^"
)

// sessions connects to programs and runs commands in containers.
type sessions struct{ e *engine }

// Attach connects to the program of a container. It fails for a container that has ended,
// because the engine would open a connection that never sends anything.
func (se *sessions) Attach(ctx context.Context, id string) (containers.Session, error) {
	return se.attach(ctx, "attach to container "+short(id), id, client.ContainerAttachOptions{Stdin: true, Stdout: true, Stderr: true})
}

// AttachOutput connects to a stream that a container prints. It fails if the engine is
// not reached through a local socket: another machine's clock may differ.
func (se *sessions) AttachOutput(ctx context.Context, id string, stream containers.Stream) (containers.Session, error) {
	what := "attach to output of container " + short(id)
	if host := se.e.conn.Load().cli.DaemonHost(); !local(host) {
		return nil, fmt.Errorf("%s: %w: the engine at %s is not this machine's", what, containers.ErrUnsupported, host)
	}
	return se.attach(ctx, what, id, client.ContainerAttachOptions{Stdout: stream == containers.Stdout, Stderr: stream == containers.Stderr})
}

func (se *sessions) attach(ctx context.Context, what, id string, o client.ContainerAttachOptions) (containers.Session, error) {
	c, cli, err := se.e.inspect(ctx, what, id)
	if err != nil {
		return nil, err
	}
	if ended(c.State) {
		return nil, fmt.Errorf("%s: %w: it has ended", what, containers.ErrNotFound)
	}
	o.Stream, o.DetachKeys = true, noKeys
	o.Stdin = o.Stdin && c.Config != nil && c.Config.OpenStdin
	res, err := cli.ContainerAttach(ctx, id, o)
	if err != nil {
		return nil, se.e.fail(ctx, cli, what, err)
	}
	s := &session{e: se.e, cli: cli, conn: res.HijackedResponse, tty: c.Config != nil && c.Config.Tty, container: id}
	s.close = sync.OnceFunc(s.conn.Close)
	return s, nil
}

// Exec runs a command in a container.
func (se *sessions) Exec(ctx context.Context, id string, c containers.Command) (containers.ExecSession, error) {
	what := "run a command in container " + short(id)
	cli, err := se.e.client(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	made, err := cli.ExecCreate(ctx, id, client.ExecCreateOptions{
		TTY: c.TTY, DetachKeys: rareKeys, AttachStdin: c.Stdin, AttachStdout: true, AttachStderr: true, Env: c.Env, WorkingDir: c.WorkDir, Cmd: c.Args,
	})
	if err == nil {
		var res client.ExecAttachResult
		if res, err = cli.ExecAttach(ctx, made.ID, client.ExecAttachOptions{TTY: c.TTY}); err == nil {
			s := &session{e: se.e, cli: cli, conn: res.HijackedResponse, tty: c.TTY, container: id, exec: made.ID}
			s.close = sync.OnceFunc(s.conn.Close)
			if c.TTY && c.Size != (containers.Size{}) {
				_ = s.Resize(ctx, c.Size) // the command runs nevertheless
			}
			return s, nil
		}
	}
	if errdefs.IsConflict(err) { // the container does not run
		return nil, fmt.Errorf("%s: %w: %s", what, containers.ErrNotFound, containers.CleanMessage(err.Error()))
	}
	return nil, se.e.fail(ctx, cli, what, err)
}

// Copy passes on the output: one stream of a terminal, otherwise two.
func (s *session) Copy(stdout, stderr io.Writer) error {
	var err error
	if s.tty {
		_, err = io.Copy(stdout, s.conn.Reader)
	} else {
		_, err = stdcopy.StdCopy(stdout, stderr, s.conn.Reader)
	}
	return err
}

// Write sends input to the program.
func (s *session) Write(p []byte) (int, error) { return s.conn.Conn.Write(p) }

// CloseWrite ends the input.
func (s *session) CloseWrite() error {
	if s.tty {
		return nil
	}
	return s.conn.CloseWrite()
}

// Close ends the connection.
func (s *session) Close() error { s.close(); return nil }

// resizeTries is the largest number of requests to resize a command's terminal. The
// requests fail until the engine has created the terminal.
const resizeTries = 10

// Resize sets the size of the terminal.
func (s *session) Resize(ctx context.Context, to containers.Size) error {
	if !s.tty {
		return nil
	}
	var err error
	for try := range resizeTries {
		if s.exec == "" {
			_, err = s.cli.ContainerResize(ctx, s.container, client.ContainerResizeOptions{Height: uint(to.Rows), Width: uint(to.Cols)})
		} else {
			_, err = s.cli.ExecResize(ctx, s.exec, client.ExecResizeOptions{Height: uint(to.Rows), Width: uint(to.Cols)})
		}
		if err == nil || s.exec == "" || errdefs.IsNotFound(err) {
			break
		}
		if running, inspected := s.cli.ExecInspect(ctx, s.exec, client.ExecInspectOptions{}); inspected != nil || !running.Running && try > 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Duration(try+1) * 10 * time.Millisecond):
		}
	}
	if errdefs.IsNotFound(err) || errdefs.IsConflict(err) {
		return nil // the program does not run
	}
	return s.e.fail(ctx, s.cli, "resize the terminal of container "+short(s.container), err)
}

// Wait polls the engine for the command's exit code, which may follow a little after the
// end of its output.
func (s *session) Wait(ctx context.Context) (int, error) {
	what := "wait for a command in container " + short(s.container)
	for pause := time.Millisecond; ; pause = min(2*pause, time.Second) {
		got, err := s.cli.ExecInspect(ctx, s.exec, client.ExecInspectOptions{})
		if err != nil {
			return 0, s.e.fail(ctx, s.cli, what, err)
		}
		if !got.Running {
			return got.ExitCode, nil
		}
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("%s: %w", what, ctx.Err())
		case <-time.After(pause):
		}
	}
}

// Signal sends the command a signal. The engine has no request for that, so this process
// signals the command's process directly. It opens a handle to the process, then asks the
// engine again whether the process is still the command, so that it cannot signal another
// process.
func (s *session) Signal(ctx context.Context, sig syscall.Signal) error {
	what := "signal a command in container " + short(s.container)
	if host := s.cli.DaemonHost(); !local(host) {
		return fmt.Errorf("%s: the engine at %s is not this machine's", what, host)
	}
	first, err := s.cli.ExecInspect(ctx, s.exec, client.ExecInspectOptions{})
	if errdefs.IsNotFound(err) || err == nil && (!first.Running || first.PID <= 0) {
		return nil
	}
	if err != nil {
		return s.e.fail(ctx, s.cli, what, err)
	}
	handle, err := unix.PidfdOpen(first.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	defer func() { _ = unix.Close(handle) }()
	again, err := s.cli.ExecInspect(ctx, s.exec, client.ExecInspectOptions{})
	if err != nil || !again.Running || again.PID != first.PID {
		return nil // the command has ended
	}
	if err := unix.PidfdSendSignal(handle, sig, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
