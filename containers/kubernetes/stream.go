package kubernetes

import (
	"context"
	"errors"
	"io"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"

	"carma/containers"
)

// sessions connects to programs and runs commands in pods.
type sessions struct {
	c     *client
	watch *podWatch
	logs  *logs
}

// stream is a WebSocket connection to a program in a pod, through the apiserver and the node's
// kubelet.
type stream struct {
	tty    bool
	sizes  sizes
	stdin  *io.PipeWriter // nil without input
	outlet outlet         // receives both outputs
	cancel context.CancelFunc
	over   chan struct{}
	err    error // result of the connection, set before over is closed
}

// dial connects to the subresource exec or attach, with the options of that request.
func (ss *sessions) dial(at types.NamespacedName, subresource string, options runtime.Object, tty, stdin, output bool, size containers.Size) (*stream, error) {
	url := ss.c.pods(ss.c.core.Get(), at).SubResource(subresource).VersionedParams(options, parameters).URL()
	executor, err := remotecommand.NewWebSocketExecutor(ss.c.config, "GET", url.String())
	if err != nil {
		return nil, err
	}
	if err := ss.c.ctx.Err(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ss.c.ctx)
	s := &stream{tty: tty, cancel: cancel, over: make(chan struct{})}
	s.sizes.init(ctx)
	s.outlet.init()
	how := remotecommand.StreamOptions{Tty: tty}
	var input *io.PipeReader
	if stdin {
		input, s.stdin = io.Pipe()
		how.Stdin = input
	}
	if output {
		how.Stdout = &half{&s.outlet, false}
		if !tty {
			how.Stderr = &half{&s.outlet, true}
		}
	}
	if tty {
		how.TerminalSizeQueue = &s.sizes
		if size != (containers.Size{}) {
			s.sizes.set(size)
		}
	}
	ss.c.tasks.Go(func() {
		defer cancel()
		s.err = executor.StreamWithContext(ctx, how)
		if input != nil {
			_ = input.CloseWithError(io.ErrClosedPipe)
		}
		close(s.over)
	})
	return s, nil
}

// takes writes input. It returns false if the connection has ended and accepted none of
// it.
func (s *stream) takes(p []byte) bool {
	n, err := s.stdin.Write(p)
	return err == nil || n > 0
}

// ended returns how the connection ended, after over is closed: the command's exit code, or an
// error if the connection ended for another reason.
func (s *stream) ended() (code int, err error) {
	if e, ok := errors.AsType[exec.CodeExitError](s.err); ok {
		return e.Code, nil
	}
	return 0, s.err
}

// outlet delivers the output of a program to a session. The session may come after the output
// begins, and may leave before the program ends.
type outlet struct {
	mu             sync.Mutex
	taken          *sync.Cond
	stdout, stderr io.Writer // nil without a session
	left           bool
	failed         error
}

func (o *outlet) init() { o.taken = sync.NewCond(&o.mu) }

// take sets the writers that get the output from now on.
func (o *outlet) take(stdout, stderr io.Writer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stdout, o.stderr = stdout, stderr
	o.taken.Broadcast()
}

// again keeps further output until a session takes it.
func (o *outlet) again() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stdout, o.stderr = nil, nil
}

// leave drops further output.
func (o *outlet) leave() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.left = true
	o.taken.Broadcast()
}

// half is one of the two outputs.
type half struct {
	of  *outlet
	err bool
}

// Write waits until somebody takes the output.
func (h *half) Write(p []byte) (int, error) {
	o := h.of
	o.mu.Lock()
	for o.stdout == nil && !o.left {
		o.taken.Wait()
	}
	to, drop := o.stdout, o.left || o.failed != nil
	if h.err {
		to = o.stderr
	}
	o.mu.Unlock()
	if drop {
		return len(p), nil
	}
	if _, err := to.Write(p); err != nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.failed = err
	}
	return len(p), nil
}

// sizes passes on the terminal's size. Only the latest size counts.
type sizes struct {
	ctx  context.Context
	next chan remotecommand.TerminalSize
}

func (q *sizes) init(ctx context.Context) {
	q.ctx, q.next = ctx, make(chan remotecommand.TerminalSize, 1)
}

func (q *sizes) set(to containers.Size) {
	size := remotecommand.TerminalSize{Width: to.Cols, Height: to.Rows}
	for {
		select {
		case q.next <- size:
			return
		default:
		}
		select {
		case <-q.next:
		default:
		}
	}
}

// Next implements remotecommand.TerminalSizeQueue.
func (q *sizes) Next() *remotecommand.TerminalSize {
	select {
	case size := <-q.next:
		return &size
	case <-q.ctx.Done():
		return nil
	}
}
