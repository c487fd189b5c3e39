package containerd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/containerd/containerd/api/services/tasks/v1"

	"carma/containers"
	"carma/containers/containerd/logfile"
	"carma/containers/containerd/relay"
)

// errEnded means that the container or command to connect with has ended.
var errEnded = fmt.Errorf("%w: it has ended", containers.ErrNotFound)

// ended reports whether the container's program has ended, or will never run.
func (r *record) ended() bool {
	return r.Labels[labelFailed] != "" || r.Labels[labelExit] != "" || r.stopped() || r.lost()
}

// session is a connection to a container's program.
type session struct {
	d   *Driver
	id  string
	dir string
	tty bool
	// joined is closed when conn is valid, when the container's logger listens. conn is nil
	// if the program ended before, or the session was closed.
	joined chan struct{}
	conn   *relay.Conn
	leave  context.CancelFunc
}

// Attach connects to the program of a container through its logger. The logger starts
// when the container is made in the kernel. A session that is opened earlier waits for
// it.
func (d *Driver) Attach(ctx context.Context, id string) (containers.Session, error) {
	what := "attach to container " + id
	r, err := d.look(ctx, id)
	if err != nil {
		return nil, d.fail(ctx, what, err)
	}
	if r.ended() {
		return nil, fmt.Errorf("%s: %w", what, errEnded)
	}
	if r.talk() == logfile.TalkNone {
		return nil, fmt.Errorf("%s: %w: it was made without a terminal and without an input", what, containers.ErrInvalid)
	}
	life, leave := context.WithCancel(context.WithoutCancel(ctx))
	s := &session{d: d, id: id, dir: r.Labels[labelDir], tty: r.talk() == logfile.TalkTerminal, joined: make(chan struct{}), leave: leave}
	if !r.running() {
		go s.join(life)
		return s, nil
	}
	defer close(s.joined)
	if s.conn, err = relay.Dial(s.dir); err != nil {
		leave()
		if again, looked := d.look(ctx, id); looked == nil && again.ended() {
			return nil, fmt.Errorf("%s: %w", what, errEnded)
		}
		return nil, fmt.Errorf("%s: its logger: %w", what, err)
	}
	return s, nil
}

// join waits until the container's logger listens, or the program can no longer run.
func (s *session) join(ctx context.Context) {
	defer close(s.joined)
	for pause := 2 * time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		conn, err := relay.Dial(s.dir)
		if err == nil {
			s.conn = conn
			return
		}
		r, err := s.d.look(ctx, s.id)
		if errors.Is(s.d.fail(ctx, "", err), containers.ErrNotFound) || err == nil && r.ended() {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// Copy passes on the output. If the program never ran, there is none.
func (s *session) Copy(stdout, stderr io.Writer) error {
	<-s.joined
	if s.conn == nil {
		return nil
	}
	return s.conn.Copy(stdout, stderr)
}

// Write sends input to the program.
func (s *session) Write(p []byte) (int, error) {
	<-s.joined
	if s.conn == nil {
		return 0, io.ErrClosedPipe
	}
	return s.conn.Write(p)
}

// CloseWrite ends the input.
func (s *session) CloseWrite() error {
	<-s.joined
	if s.tty || s.conn == nil {
		return nil
	}
	return s.conn.CloseWrite()
}

// Resize sets the size of the terminal.
func (s *session) Resize(ctx context.Context, to containers.Size) error {
	if !s.tty {
		return nil
	}
	return s.d.resize(ctx, s.id, "", to)
}

// Close ends the connection.
func (s *session) Close() error {
	s.leave()
	<-s.joined
	if s.conn == nil {
		return nil
	}
	return s.conn.Close()
}

// resize sets the size of the terminal of a container, or of a command in it. It returns
// no error if the container or command does not run.
func (d *Driver) resize(ctx context.Context, id, exec string, to containers.Size) error {
	_, err := d.cli.TaskService().ResizePty(ctx, &tasks.ResizePtyRequest{
		ContainerID: id, ExecID: exec, Width: uint32(to.Cols), Height: uint32(to.Rows),
	})
	if err = native(err); err == nil {
		return nil
	}
	res, looked := d.cli.TaskService().Get(ctx, &tasks.GetRequest{ContainerID: id, ExecID: exec})
	if looked != nil || !(&record{task: res.Process}).running() {
		return nil
	}
	return d.fail(ctx, "resize the terminal of container "+id, err)
}
