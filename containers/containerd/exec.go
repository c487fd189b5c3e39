package containerd

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/containerd/containerd/api/services/tasks/v1"
	"github.com/containerd/typeurl/v2"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"carma/containers"
)

// command is a command in a container. Its shim connects it with named pipes in a folder.
// This process reads the pipes until the command has ended, even after the session is
// closed. Otherwise the command would block on a full pipe.
type command struct {
	d             *Driver
	container, id string
	folder        string
	lock          *os.File // lock on the folder, held while a process reads the pipes
	tty, stdin    bool
	out, errs     *os.File // errs is nil for a terminal

	opening sync.Mutex
	in      *os.File // nil until it is opened

	to    *outlet
	ended chan struct{} // closed when code and fault are valid
	code  int
	fault error         // set if the code is not known
	empty chan struct{} // closed when the output has ended and was passed on
}

// Exec runs a command in a container, with the user, groups, environment, folder, rights
// and limits of the container's program.
func (d *Driver) Exec(ctx context.Context, id string, c containers.Command) (containers.ExecSession, error) {
	what := "run a command in container " + id
	r, err := d.look(ctx, id)
	if err != nil {
		return nil, d.fail(ctx, what, err)
	}
	spec := r.spec()
	if !r.running() || spec == nil || spec.Process == nil {
		return nil, fmt.Errorf("%s: %w: it does not run", what, containers.ErrNotFound)
	}
	run := d.command(r, "exec-"+strings.ToLower(rand.Text()[:12]))
	run.tty, run.stdin = c.TTY, c.Stdin
	if err := run.makePipes(); err != nil {
		run.close()
		return nil, d.fail(ctx, what, err)
	}
	if err := run.start(ctx, commandSpec(spec.Process, c)); err != nil {
		run.forget()
		run.close()
		if again, looked := d.look(ctx, id); looked == nil && !again.running() {
			return nil, fmt.Errorf("%s: %w: it does not run", what, containers.ErrNotFound)
		}
		return nil, d.fail(ctx, what, err)
	}
	d.commands.Go(run.live)
	return run, nil
}

// command returns a command that is not started yet.
func (d *Driver) command(r *record, id string) *command {
	return &command{
		d: d, container: r.ID, id: id, folder: filepath.Join(r.Labels[labelDir], execFolder, id),
		to: newOutlet(), ended: make(chan struct{}), empty: make(chan struct{}),
	}
}

// commandSpec returns the specification of the container's program with another command.
func commandSpec(program *specs.Process, c containers.Command) *specs.Process {
	p := *program
	p.Args, p.Terminal, p.ConsoleSize = c.Args, c.TTY, nil
	var term []string
	if c.TTY {
		term = []string{defaultTerm}
		if c.Size != (containers.Size{}) {
			p.ConsoleSize = &specs.Box{Height: uint(c.Size.Rows), Width: uint(c.Size.Cols)}
		}
	}
	p.Env = merge(term, slices.Clone(p.Env), c.Env)
	if c.WorkDir != "" {
		p.Cwd = path.Clean(c.WorkDir)
	}
	return &p
}

// execFolder is the folder for commands in a container's folder, which only root can
// access.
const execFolder = "exec"

func (c *command) pipe(name string) string { return filepath.Join(c.folder, name) }

// makePipes makes the command's folder and opens the pipes for its output, because the
// shim waits for a reader.
func (c *command) makePipes() error {
	if err := os.MkdirAll(c.folder, 0o700); err != nil {
		return err
	}
	names := []string{"out"}
	if !c.tty {
		names = append(names, "err")
	}
	if c.stdin {
		names = append(names, "in")
	}
	for _, name := range names {
		if err := unix.Mkfifo(c.pipe(name), 0o600); err != nil {
			return &os.PathError{Op: "make pipe", Path: c.pipe(name), Err: err}
		}
	}
	return c.open()
}

// open locks the folder for this process and opens the pipes for the output.
func (c *command) open() (err error) {
	if c.lock, err = os.OpenFile(c.pipe("lock"), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return err
	}
	if err := unix.Flock(int(c.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return err
	}
	const reading = os.O_RDONLY | unix.O_NONBLOCK
	if c.out, err = os.OpenFile(c.pipe("out"), reading, 0); err == nil && !c.tty {
		c.errs, err = os.OpenFile(c.pipe("err"), reading, 0)
	}
	return err
}

func (c *command) closeFiles() {
	c.opening.Lock()
	defer c.opening.Unlock()
	for _, f := range []*os.File{c.out, c.errs, c.in, c.lock} {
		if f != nil {
			_ = f.Close()
		}
	}
}

func (c *command) close() {
	_ = os.RemoveAll(c.folder) // nobody can take the command over
	c.closeFiles()
}

func (c *command) start(ctx context.Context, p *specs.Process) error {
	spec, err := typeurl.MarshalAnyToProto(p)
	if err != nil {
		return err
	}
	ask := &tasks.ExecProcessRequest{ContainerID: c.container, ExecID: c.id, Terminal: c.tty, Stdout: c.pipe("out"), Spec: spec}
	if !c.tty {
		ask.Stderr = c.pipe("err")
	}
	if c.stdin {
		ask.Stdin = c.pipe("in")
	}
	if _, err := c.d.cli.TaskService().Exec(ctx, ask); err != nil {
		return native(err)
	}
	_, err = c.d.cli.TaskService().Start(ctx, &tasks.StartRequest{ContainerID: c.container, ExecID: c.id})
	return native(err)
}

// forgetWithin is the longest time to delete a command from its shim. The shim itself
// waits 10 s for processes that still have its output open.
const forgetWithin = 20 * time.Second

// forget deletes the command from its shim. It kills a command that runs, because the
// answer to its start was lost.
func (c *command) forget() {
	ctx, cancel := context.WithTimeout(context.Background(), forgetWithin)
	defer cancel()
	_ = c.d.signal(ctx, c.container, c.id, syscall.SIGKILL)
	_, _ = c.d.cli.TaskService().DeleteProcess(ctx, &tasks.DeleteProcessRequest{ContainerID: c.container, ExecID: c.id})
}

// live passes on the output and waits for the end of the command, then cleans up. If the
// driver is closed before, the command continues, and the next driver cleans up.
func (c *command) live() {
	stop := context.AfterFunc(c.d.life, func() {
		for _, f := range []*os.File{c.out, c.errs} {
			if f != nil {
				_ = f.Close()
			}
		}
		c.to.leave()
	})
	defer stop()
	var pumps sync.WaitGroup
	pumps.Go(func() { c.pump(c.out, 1) })
	if c.errs != nil {
		pumps.Go(func() { c.pump(c.errs, 2) })
	}
	c.code, c.fault = c.await()
	close(c.ended)
	for _, f := range []*os.File{c.out, c.errs} {
		if f != nil {
			_ = f.SetReadDeadline(time.Now().Add(lastWords))
		}
	}
	pumps.Wait()
	close(c.empty)
	if c.d.life.Err() != nil {
		c.closeFiles()
		return
	}
	c.forget()
	c.close()
}

// lastWords is the time to wait for output after a command has ended while one of its
// child processes still holds the pipe.
const lastWords = 2 * time.Second

// pump passes on a stream until it ends.
func (c *command) pump(from *os.File, stream uint8) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		c.to.write(stream, buf[:n])
		if err != nil {
			return
		}
		select {
		case <-c.ended:
			_ = from.SetReadDeadline(time.Now().Add(lastWords))
		default:
		}
	}
}

// await returns the command's exit code when it has ended. It retries while the engine
// does not answer.
func (c *command) await() (int, error) {
	what := "wait for a command in container " + c.container
	for {
		res, err := c.d.cli.TaskService().Wait(c.d.life, &tasks.WaitRequest{ContainerID: c.container, ExecID: c.id})
		if err == nil {
			return int(res.ExitStatus), nil
		}
		if err = c.d.fail(c.d.life, what, err); !errors.Is(err, containers.ErrUnavailable) {
			return 0, err
		}
		select {
		case <-c.d.life.Done():
			return 0, err
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// takeOver takes over the commands in a container whose daemon was killed: it reads and
// drops their output, so that they continue, and cleans up after them. Each driver does
// so once.
func (d *Driver) takeOver(r *record) {
	if _, again := d.tookOver.LoadOrStore(r.ID, true); again {
		return
	}
	left, err := os.ReadDir(filepath.Join(r.Labels[labelDir], execFolder))
	if err != nil { // there was no command
		return
	}
	for _, folder := range left {
		c := d.command(r, folder.Name())
		_, err := os.Lstat(c.pipe("err"))
		c.tty = err != nil
		if err := c.open(); err != nil { // another process has it, or it was never started
			c.closeFiles()
			continue
		}
		c.to.leave()
		d.commands.Go(c.live)
	}
}
