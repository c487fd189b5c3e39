package terminals

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"syscall"
	"time"

	"carma/containers"
	"carma/internal/lazyregexp"
	"carma/runner/api"
	"carma/runner/console"
)

// notThere matches errors that say that the program does not exist. The exit code is then
// 127, as a shell's.
var notThere = lazyregexp.New(`no such file|not found`)

// serveExec runs a command in a task until it has ended. If the caller leaves before,
// the command gets SIGHUP, and after hangUpGrace it is killed.
func (t *Terminals) serveExec(ctx context.Context, driver containers.Terminals, c *console.Console, e api.ExecRequest, to *api.Terminal) {
	c.Touch()
	session, err := driver.Exec(ctx, c.ID(), containers.Command{
		Args: e.Command, Env: e.Env, WorkDir: e.WorkDir, Stdin: e.Interactive, TTY: e.TTY, Size: containers.Size(e.Size),
	})
	if err != nil {
		code := 125
		if errors.Is(err, containers.ErrInvalid) {
			code = 126
			if notThere().MatchString(err.Error()) {
				code = 127
			}
		}
		_ = to.Write(api.FrameStderr, []byte("carma: "+err.Error()+"\n"))
		_ = to.Write(api.FrameExit, []byte(strconv.Itoa(code)))
		return
	}
	defer func() { _ = session.Close() }()
	left, over, hungUp := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() { defer close(left); takeForCommand(ctx, session, c, to) }()
	go func() {
		defer close(hungUp)
		select {
		case <-over:
		case <-left:
			t.endExec(session, over)
		}
	}()
	defer func() { close(over); <-hungUp }()
	cut := context.AfterFunc(ctx, func() { // the daemon stops
		<-hungUp
		_ = session.Close()
	})
	defer cut()
	_ = session.Copy(&toCaller{to: to.Stream(api.FrameStdout)}, &toCaller{to: to.Stream(api.FrameStderr)}) // the exit code says how the command ended
	code, err := session.Wait(ctx)
	if err != nil {
		if ctx.Err() == nil {
			_ = to.Write(api.FrameNote, []byte(err.Error()))
		}
		return
	}
	_ = to.Write(api.FrameExit, []byte(strconv.Itoa(code)))
}

// toCaller hands output to a caller. It drops output after the caller has left, so that
// the command can end.
type toCaller struct {
	to   io.Writer
	left bool
}

func (w *toCaller) Write(p []byte) (int, error) {
	if !w.left {
		_, err := w.to.Write(p)
		w.left = err != nil
	}
	return len(p), nil
}

// takeForCommand reads the frames of a command's caller until the caller leaves.
func takeForCommand(ctx context.Context, session containers.ExecSession, c *console.Console, t *api.Terminal) {
	for {
		f, err := t.Read()
		if err != nil {
			return
		}
		switch f.Kind {
		case api.FrameInput:
			c.Touch()
			if _, err := session.Write(f.Data); err != nil {
				continue // the command has closed its input and may continue
			}
		case api.FrameEnd:
			_ = session.CloseWrite() // it fails if the command has ended
		case api.FrameSize:
			var to api.TerminalSize
			if json.Unmarshal(f.Data, &to) == nil {
				_ = session.Resize(ctx, containers.Size(to))
			}
		case api.FrameSignal:
			if n, err := strconv.Atoi(string(f.Data)); err == nil && n > 0 && n < 65 {
				_ = session.Signal(ctx, syscall.Signal(n))
			}
		}
	}
}

// endExec ends a command after its caller has left. A daemon that stops has no time to wait
// for it.
func (t *Terminals) endExec(session containers.ExecSession, over <-chan struct{}) {
	signal := func(s syscall.Signal) {
		ctx, cancel := context.WithTimeout(context.Background(), hangUpAtEnd)
		defer cancel()
		if err := session.Signal(ctx, s); err != nil {
			t.log.Warn().Err(err).Msg("a command in a task goes on without its caller")
		}
	}
	signal(syscall.SIGHUP)
	select {
	case <-over:
	case <-t.work.Done():
	case <-time.After(hangUpGrace):
		signal(syscall.SIGKILL)
	}
}
