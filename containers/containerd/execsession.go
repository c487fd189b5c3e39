package containerd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/containerd/containerd/api/services/tasks/v1"
	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"

	"carma/containers"
)

// Copy passes on the output.
func (c *command) Copy(stdout, stderr io.Writer) error {
	c.to.join(stdout, stderr)
	select {
	case <-c.empty:
	case <-c.to.gone:
	}
	return c.to.fault()
}

// Write sends input to the command.
func (c *command) Write(p []byte) (int, error) {
	f, err := c.input()
	if err != nil {
		return 0, err
	}
	return f.Write(p)
}

// input opens the pipe for the input, waiting until the shim reads it. The shim does so
// soon after the start. Input written and closed earlier would be lost.
func (c *command) input() (*os.File, error) {
	c.opening.Lock()
	defer c.opening.Unlock()
	if !c.stdin {
		return nil, io.ErrClosedPipe
	}
	for c.in == nil {
		f, err := os.OpenFile(c.pipe("in"), os.O_WRONLY|unix.O_NONBLOCK, 0)
		if err == nil {
			c.in = f
			break
		}
		if !errors.Is(err, unix.ENXIO) {
			return nil, err
		}
		select {
		case <-c.ended:
			return nil, io.ErrClosedPipe
		case <-time.After(time.Millisecond):
		}
	}
	return c.in, nil
}

// CloseWrite ends the input: this process and the shim close the pipe.
func (c *command) CloseWrite() error {
	if c.tty || !c.stdin {
		return nil
	}
	f, err := c.input()
	if err != nil {
		return nil // the command has ended
	}
	_ = f.Close()
	_, err = c.d.cli.TaskService().CloseIO(c.d.life, &tasks.CloseIORequest{ContainerID: c.container, ExecID: c.id, Stdin: true})
	if err = native(err); err == nil || errdefs.IsNotFound(err) || errdefs.IsFailedPrecondition(err) {
		return nil
	}
	return c.d.fail(c.d.life, "end the input of a command in container "+c.container, err)
}

// Resize sets the size of the terminal.
func (c *command) Resize(ctx context.Context, to containers.Size) error {
	if !c.tty {
		return nil
	}
	return c.d.resize(ctx, c.container, c.id, to)
}

// Signal sends the command a signal.
func (c *command) Signal(ctx context.Context, s syscall.Signal) error {
	select {
	case <-c.ended:
		return nil
	default:
		return c.d.fail(ctx, "signal a command in container "+c.container, c.d.signal(ctx, c.container, c.id, s))
	}
}

// Wait returns the command's exit code.
func (c *command) Wait(ctx context.Context) (int, error) {
	select {
	case <-c.ended:
		return c.code, c.fault
	case <-ctx.Done():
		return 0, fmt.Errorf("wait for a command in container %s: %w", c.container, ctx.Err())
	}
}

// Close ends the session. The command continues, and its output is dropped.
func (c *command) Close() error { c.to.leave(); return nil }
