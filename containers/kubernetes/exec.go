package kubernetes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"carma/containers"
	"carma/containers/kubernetes/manifest"
	"carma/internal/lazyregexp"
)

var _ containers.Terminals = (*Driver)(nil)

// shell starts each command. A cluster cannot set a command's folder or environment, nor send
// it a signal, but a shell in the container can. The shell prints its pid, and then executes
// the command.
const shell = "/bin/sh"

// noProgram matches the error for a program that the container does not have.
var noProgram = lazyregexp.New(`no such file or directory|executable file not found|not found in \$PATH`)

// command is a session with a command that runs in a pod.
type command struct {
	*stream
	ss  *sessions
	at  types.NamespacedName
	pid string // pid in the container, or empty if unknown
	// early is the standard error from before the shell printed its pid.
	early lockedBuffer

	closed chan struct{}
	close  func()
}

// Exec runs a command in a pod. If the container has no shell, the command gets no folder,
// environment and signals.
func (ss *sessions) Exec(ctx context.Context, id string, c containers.Command) (containers.ExecSession, error) {
	what := "run a command in pod " + ss.c.ns.Short(id)
	pod, err := ss.c.pod(ctx, what, id)
	if err != nil {
		return nil, err
	}
	if !manifest.Running(pod) || manifest.Ended(pod) {
		return nil, fmt.Errorf("%s: %w: it does not run", what, containers.ErrNotFound)
	}
	script, err := shellScript(c)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", what, containers.ErrInvalid, err)
	}
	s, err := ss.command(pod, append([]string{shell, "-c", script, c.WorkDir}, c.Args...), c)
	if err != nil {
		return nil, fail(ctx, what, err)
	}
	err = s.hello(ctx)
	if err != nil && noProgram().MatchString(err.Error()) {
		if len(c.Env) > 0 || c.WorkDir != "" {
			return nil, fmt.Errorf("%s: %w: a cluster needs %s in the image to give a command an environment or a folder", what, containers.ErrUnsupported, shell)
		}
		if s, err = ss.command(pod, c.Args, c); err == nil {
			return s, nil
		}
	}
	if err != nil {
		if now, gone := ss.c.pod(ctx, what, id); gone != nil || manifest.Ended(now) {
			return nil, fmt.Errorf("%s: %w: it has ended", what, containers.ErrNotFound)
		}
		return nil, fail(ctx, what, err)
	}
	return s, nil
}

func (ss *sessions) command(pod *corev1.Pod, args []string, c containers.Command) (*command, error) {
	options := &corev1.PodExecOptions{Container: manifest.ContainerName, Command: args, Stdin: c.Stdin, Stdout: true, Stderr: !c.TTY, TTY: c.TTY}
	stream, err := ss.dial(manifest.HomeOf(pod), "exec", options, c.TTY, c.Stdin, true, c.Size)
	if err != nil {
		return nil, err
	}
	s := &command{stream: stream, ss: ss, at: manifest.HomeOf(pod), closed: make(chan struct{})}
	s.close = sync.OnceFunc(func() {
		if s.stdin != nil {
			_ = s.stdin.Close()
		}
		s.outlet.leave() // the command would block if nobody read the rest of its output
		close(s.closed)
	})
	return s, nil
}

var variable = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)

// shellScript returns the script by which a shell starts a command. The script's first argument
// is the folder.
func shellScript(c containers.Command) (string, error) {
	var b strings.Builder
	b.WriteString("echo $$; ")
	for _, kv := range c.Env {
		name, value, _ := strings.Cut(kv, "=")
		if !variable().MatchString(name) {
			return "", fmt.Errorf("--env %s: on a cluster a name has letters, digits and _ only", name)
		}
		b.WriteString("export " + name + "='" + strings.ReplaceAll(value, "'", `'\''`) + "'; ")
	}
	b.WriteString(`if [ -n "$0" ]; then cd "$0" || exit 126; fi; exec "$@"`)
	return b.String(), nil
}

// hello reads the pid that the shell prints. The output after the pid is kept until it is read.
func (s *command) hello(ctx context.Context) error {
	first := &firstLine{out: make(chan string, 1), rest: &s.outlet}
	s.outlet.take(first, &s.early)
	select {
	case line := <-first.out:
		s.pid = strings.TrimSpace(line)
		return nil
	case <-s.over:
		select {
		case line := <-first.out:
			s.pid = strings.TrimSpace(line)
			return nil
		default:
		}
		if _, err := s.ended(); err != nil {
			return err
		}
		return errors.New("the shell did not answer")
	case <-ctx.Done():
		s.cancel()
		return ctx.Err()
	}
}

// lockedBuffer is a small buffer with a lock.
type lockedBuffer struct {
	mu sync.Mutex
	b  []byte
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.b = append(l.b, p...)
	return len(p), nil
}

func (l *lockedBuffer) bytes() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b
}

// firstLine takes the first line of an output, and passes the rest to a session.
type firstLine struct {
	out  chan string
	rest *outlet
	got  []byte
	told bool
}

// Write is called by one goroutine only.
func (f *firstLine) Write(p []byte) (int, error) {
	n := len(p)
	if !f.told {
		f.got = append(f.got, p...)
		line, rest, ok := bytes.Cut(f.got, []byte("\n"))
		if !ok {
			return n, nil
		}
		f.told, p = true, rest
		f.rest.again() // no session takes the rest yet
		f.out <- string(line)
		if len(p) == 0 {
			return n, nil
		}
	}
	_, err := (&half{of: f.rest}).Write(p)
	return n, err
}

// Copy copies the output until the command has ended or the session is closed.
func (s *command) Copy(stdout, stderr io.Writer) error {
	if _, err := stderr.Write(s.early.bytes()); err != nil {
		return err
	}
	s.outlet.take(stdout, stderr)
	select {
	case <-s.over:
		_, err := s.ended()
		return err
	case <-s.closed:
		return io.ErrClosedPipe
	}
}

// Write sends input.
func (s *command) Write(p []byte) (int, error) {
	if s.stdin == nil {
		return 0, io.ErrClosedPipe
	}
	return s.stdin.Write(p)
}

// CloseWrite ends the input.
func (s *command) CloseWrite() error {
	if s.tty || s.stdin == nil {
		return nil
	}
	return s.stdin.Close()
}

// Resize sets the terminal's size.
func (s *command) Resize(_ context.Context, to containers.Size) error {
	if s.tty {
		s.sizes.set(to)
	}
	return nil
}

// Close does not end the command. The connection stays open as long as the driver, because the
// command would block without a reader of its output.
func (s *command) Close() error { s.close(); return nil }

// Wait returns the command's exit code.
func (s *command) Wait(ctx context.Context) (int, error) {
	what := "wait for a command in pod " + s.at.Name
	select {
	case <-s.over:
	case <-ctx.Done():
		return 0, fmt.Errorf("%s: %w", what, ctx.Err())
	}
	code, err := s.ended()
	switch {
	case err == nil:
		return code, nil
	case noProgram().MatchString(err.Error()):
		return 127, nil
	case strings.Contains(err.Error(), "permission denied"):
		return 126, nil
	}
	return 0, fail(ctx, what, err)
}

// Signal sends the command a signal, through a shell in the container.
func (s *command) Signal(ctx context.Context, sig syscall.Signal) error {
	select {
	case <-s.over:
		return nil
	default:
	}
	what := "signal a command in pod " + s.at.Name
	if _, err := strconv.Atoi(s.pid); err != nil {
		return fmt.Errorf("%s: a cluster sends no signals, and there is no %s in the image", what, shell)
	}
	pod, err := s.ss.c.podNamed(ctx, s.at)
	if err != nil {
		return fail(ctx, what, err)
	}
	kill, err := s.ss.command(pod, []string{shell, "-c", "kill -" + strconv.Itoa(int(sig)) + " " + s.pid}, containers.Command{})
	if err != nil {
		return fail(ctx, what, err)
	}
	defer func() { _ = kill.Close() }()
	kill.outlet.take(io.Discard, io.Discard)
	code, err := kill.Wait(ctx)
	select {
	case <-s.over:
		return nil // the command has ended in the meantime
	default:
	}
	if err == nil && code != 0 {
		err = fmt.Errorf("%s: kill ended with %d", what, code)
	}
	return err
}
