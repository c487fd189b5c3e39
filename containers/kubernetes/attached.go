package kubernetes

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"carma/containers"
	"carma/containers/kubernetes/manifest"
)

// attached is a session with the program of a pod. It connects when the program runs, because a
// cluster accepts no connection before.
//
// The output of a program without a terminal is read from the log, which contains all output
// from the beginning. A terminal's output comes through the connection, because the log has
// only whole lines, and a prompt is not a whole line. Output from before the connection is in
// the log only.
type attached struct {
	ss    *sessions
	what  string
	id    string
	tty   bool
	since time.Time // from this time on the log is read
	out   outlet
	input input

	ctx    context.Context
	close  func()
	closed chan struct{}

	mu   sync.Mutex
	size containers.Size
	now  *stream // nil while not connected

	over chan struct{}
	err  error // set before over is closed
}

const (
	// attachAgain is the first pause before it tries again to attach to a program that does not
	// run yet. It is short, because a terminal's output during the pause is lost.
	attachAgain = 50 * time.Millisecond
	attachMost  = time.Second
	// flushFor is the longest time that a closed session may need to deliver its input.
	flushFor = 2 * time.Second
	// takenAfter is the time after which a connection that was made before its pod ran counts as
	// accepted. It begins when the pod runs. The kubelet refuses a connection within milliseconds.
	takenAfter = 500 * time.Millisecond
)

// Attach connects with the program of a pod.
func (ss *sessions) Attach(ctx context.Context, id string) (containers.Session, error) {
	what := "attach to pod " + ss.c.ns.Short(id)
	pod, err := ss.c.pod(ctx, what, id)
	if err != nil {
		return nil, err
	}
	if manifest.Ended(pod) {
		return nil, fmt.Errorf("%s: %w: it has ended", what, containers.ErrNotFound)
	}
	if err := ss.c.ctx.Err(); err != nil {
		return nil, fail(ss.c.ctx, what, err)
	}
	s := &attached{ss: ss, what: what, id: id, closed: make(chan struct{}), over: make(chan struct{})}
	for _, c := range pod.Spec.Containers {
		s.tty = s.tty || c.Name == manifest.ContainerName && c.TTY
	}
	if manifest.Running(pod) {
		s.since = time.Now()
	}
	s.out.init()
	s.input.init()
	var cancel context.CancelFunc
	s.ctx, cancel = context.WithCancel(ss.c.ctx)
	s.close = sync.OnceFunc(func() {
		close(s.closed)
		s.out.leave()
		s.input.end()
		time.AfterFunc(flushFor, cancel)
	})
	ss.c.tasks.Go(func() {
		defer cancel()
		defer close(s.over)
		defer s.input.stop()
		if s.err = s.run(); s.ctx.Err() != nil {
			s.err = s.ctx.Err()
		}
	})
	return s, nil
}

// run keeps the session connected until the program has ended.
func (s *attached) run() error {
	if s.tty {
		return s.attach(s.ctx)
	}
	ctx, enough := context.WithCancel(s.ctx)
	var feeding sync.WaitGroup
	defer feeding.Wait()
	defer enough()
	feeding.Go(func() { _ = s.attach(ctx) })
	// There is no log before the container has started.
	err := s.ss.watch.follow(ctx, s.what, s.id, func(pod *corev1.Pod) (bool, error) { return manifest.Running(pod) || manifest.Ended(pod), nil })
	if err != nil {
		return err
	}
	out := &half{of: &s.out}
	return s.ss.logs.Logs(ctx, s.id, s.since, true, func(_ time.Time, _ containers.Stream, line []byte, partial bool) {
		_, _ = out.Write(line)
		if !partial {
			_, _ = out.Write([]byte("\n"))
		}
	})
}

// attach connects when the program runs, and returns when the connection or the program has
// ended.
func (s *attached) attach(ctx context.Context) error {
	for pause := attachAgain; ; pause = min(2*pause, attachMost) {
		pod, err := s.ss.c.pod(ctx, s.what, s.id)
		if err != nil || manifest.Ended(pod) {
			return err
		}
		switch {
		case manifest.Running(pod), s.tty && pod.Spec.NodeName != "":
			if connected, err := s.connect(ctx, pod); connected {
				return err
			}
		default:
			pause = attachAgain
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// connect attaches once. connected is true if there was a connection; it has ended then.
func (s *attached) connect(ctx context.Context, pod *corev1.Pod) (connected bool, err error) {
	options := &corev1.PodAttachOptions{Container: manifest.ContainerName, Stdin: true, Stdout: s.tty, TTY: s.tty}
	s.mu.Lock()
	one, err := s.ss.dial(manifest.HomeOf(pod), "attach", options, s.tty, true, s.tty, s.size)
	s.now = one
	s.mu.Unlock()
	if err != nil {
		return false, err
	}
	// The apiserver accepts a connection before the kubelet does. Input is written only when the
	// kubelet cannot refuse the connection any more. The first output proves that, but a program
	// that waits for input prints nothing.
	alive := make(chan struct{})
	seen := &firstSeen{to: &half{of: &s.out}, alive: sync.OnceFunc(func() { close(alive) })}
	if one.outlet.take(seen, io.Discard); manifest.Running(pod) {
		seen.alive()
	} else {
		later, end := context.WithCancel(ctx)
		var waiting sync.WaitGroup
		defer waiting.Wait()
		defer end()
		waiting.Go(func() { s.onceTaken(later, one, seen.alive) })
	}
	handed := make(chan bool, 1)
	go func() { handed <- s.input.hand(one, alive) }()
	select {
	case <-one.over:
	case <-ctx.Done():
		one.cancel()
		<-one.over
	}
	used := <-handed || seen.any.Load()
	_, err = one.ended()
	return used || err == nil, err
}

// onceTaken calls alive takenAfter after the pod runs, if the connection has not been refused
// by then.
func (s *attached) onceTaken(ctx context.Context, one *stream, alive func()) {
	if s.ss.watch.follow(ctx, s.what, s.id, func(pod *corev1.Pod) (bool, error) { return manifest.Running(pod) || manifest.Ended(pod), nil }) != nil {
		return
	}
	select {
	case <-one.over:
	case <-ctx.Done():
	case <-time.After(takenAfter):
		alive()
	}
}

// firstSeen calls alive at the first output.
type firstSeen struct {
	to    io.Writer
	alive func()
	any   atomic.Bool
}

func (f *firstSeen) Write(p []byte) (int, error) {
	f.any.Store(true)
	f.alive()
	return f.to.Write(p)
}

// Copy copies the output until the program has ended or the session is closed.
func (s *attached) Copy(stdout, stderr io.Writer) error {
	s.out.take(stdout, stderr)
	select {
	case <-s.over:
		return s.err
	case <-s.closed:
		return io.ErrClosedPipe
	}
}

// Write sends input. It waits until the program runs.
func (s *attached) Write(p []byte) (int, error) { return s.input.w.Write(p) }

// CloseWrite ends the input.
func (s *attached) CloseWrite() error {
	if !s.tty {
		s.input.end()
	}
	return nil
}

// Resize sets the terminal's size, at once or when the session is connected.
func (s *attached) Resize(_ context.Context, to containers.Size) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.size = to; s.now != nil && s.tty {
		s.now.sizes.set(to)
	}
	return nil
}

// Close ends the session. A program without a terminal then reads the end of its input.
func (s *attached) Close() error { s.close(); return nil }
