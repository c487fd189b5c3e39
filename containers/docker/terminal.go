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

// session is a connection with a container's program, or with a command in it.
type session struct {
	d         *Driver
	cli       *client.Client
	conn      client.HijackedResponse
	tty       bool
	container string
	close     func()
	exec      string // of a command
}

// The keys by which the engine itself would end a session; it cannot do without. By
// default they are ctrl-p ctrl-q: the engine keeps ctrl-p back until the next key
// comes, and carma has keys of its own. noKeys is a byte that no UTF-8 text has.
// Requests for commands are JSON, which is UTF-8, so rareKeys are ctrl-^ many times.
const (
	noKeys   = "\xff,\xff,\xff,\xff"
	rareKeys = "ctrl-^,ctrl-^,ctrl-^,ctrl-^,ctrl-^,ctrl-^,ctrl-^,ctrl-^"
)

// Attach connects with the program of a container. It fails for one that has ended:
// the engine would give a connection on which nothing comes.
func (d *Driver) Attach(ctx context.Context, id string) (containers.Session, error) {
	return d.attach(ctx, "attach to container "+short(id), id, client.ContainerAttachOptions{Stdin: true, Stdout: true, Stderr: true})
}

// AttachOutput connects with a stream that a container prints. The engine may be
// another machine's, whose clock the caller does not know; there it does not.
func (d *Driver) AttachOutput(ctx context.Context, id string, stream containers.Stream) (containers.Session, error) {
	what := "attach to output of container " + short(id)
	if host := d.conn.Load().cli.DaemonHost(); !local(host) {
		return nil, fmt.Errorf("%s: %w: the engine at %s is not this machine's", what, containers.ErrUnsupported, host)
	}
	return d.attach(ctx, what, id, client.ContainerAttachOptions{Stdout: stream == containers.Stdout, Stderr: stream == containers.Stderr})
}

func (d *Driver) attach(ctx context.Context, what, id string, o client.ContainerAttachOptions) (containers.Session, error) {
	c, cli, err := d.inspect(ctx, what, id)
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
		return nil, d.fail(ctx, cli, what, err)
	}
	s := &session{d: d, cli: cli, conn: res.HijackedResponse, tty: c.Config != nil && c.Config.Tty, container: id}
	s.close = sync.OnceFunc(s.conn.Close)
	return s, nil
}

// Exec runs a command in a container.
func (d *Driver) Exec(ctx context.Context, id string, c containers.Command) (containers.ExecSession, error) {
	what := "run a command in container " + short(id)
	cli, err := d.client(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	made, err := cli.ExecCreate(ctx, id, client.ExecCreateOptions{
		TTY: c.TTY, DetachKeys: rareKeys, AttachStdin: c.Stdin, AttachStdout: true, AttachStderr: true, Env: c.Env, WorkingDir: c.WorkDir, Cmd: c.Args,
	})
	if err == nil {
		var res client.ExecAttachResult
		if res, err = cli.ExecAttach(ctx, made.ID, client.ExecAttachOptions{TTY: c.TTY}); err == nil {
			s := &session{d: d, cli: cli, conn: res.HijackedResponse, tty: c.TTY, container: id, exec: made.ID}
			s.close = sync.OnceFunc(s.conn.Close)
			if c.TTY && c.Size != (containers.Size{}) {
				_ = s.Resize(ctx, c.Size) // it runs nevertheless
			}
			return s, nil
		}
	}
	if errdefs.IsConflict(err) { // it does not run
		return nil, fmt.Errorf("%s: %w: %s", what, containers.ErrNotFound, containers.CleanMessage(err.Error()))
	}
	return nil, d.fail(ctx, cli, what, err)
}

// Copy hands on the output: one stream of a terminal, else two.
func (s *session) Copy(stdout, stderr io.Writer) error {
	var err error
	if s.tty {
		_, err = io.Copy(stdout, s.conn.Reader)
	} else {
		_, err = stdcopy.StdCopy(stdout, stderr, s.conn.Reader)
	}
	return err
}

// Write gives input.
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

// resizeTries is the largest number of requests to resize a command's terminal. They fail
// until the engine has created the terminal.
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
		return nil // it does not run
	}
	return s.d.fail(ctx, s.cli, "resize the terminal of container "+short(s.container), err)
}

// Wait asks for the code of the command until the engine knows it: its output may
// end a little before it does.
func (s *session) Wait(ctx context.Context) (int, error) {
	what := "wait for a command in container " + short(s.container)
	for pause := time.Millisecond; ; pause = min(2*pause, time.Second) {
		got, err := s.cli.ExecInspect(ctx, s.exec, client.ExecInspectOptions{})
		if err != nil {
			return 0, s.d.fail(ctx, s.cli, what, err)
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

// Signal sends the command a signal. The engine has no request for that, so the
// process gets it from here. A handle to the process is opened before the engine is
// asked again whether that is still the command, so no other process is hit.
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
		return s.d.fail(ctx, s.cli, what, err)
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
		return nil // it has ended
	}
	if err := unix.PidfdSendSignal(handle, sig, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
