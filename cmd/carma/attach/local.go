package attach

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"

	"carma/cmd/carma/cli"
	"carma/runner/api"
)

// Local is this program's side of a terminal: its streams, and the keys that detach.
type Local struct {
	In       io.Reader
	Out, Err io.Writer
	// Input is set if the input is sent. TTY is set if the other side has a terminal. With
	// both, the local terminal is in raw mode meanwhile, and its size is sent.
	Input, TTY bool
	Keys       []byte // the keys that detach, or empty for none
}

// NotATerminal refuses a request for a terminal if the local streams are no terminal, as
// docker does.
func NotATerminal(a *cli.App) error {
	if cli.IsTerminal(a.In) {
		return nil
	}
	return cli.Usagef("leave -t out", "standard input is not a terminal")
}

// Size returns the size of the local terminal, or zero if there is none.
func (l *Local) Size() api.TerminalSize {
	f, ok := l.Out.(*os.File)
	if !ok {
		return api.TerminalSize{}
	}
	cols, rows, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return api.TerminalSize{}
	}
	return api.TerminalSize{Rows: uint16(rows), Cols: uint16(cols)}
}

// errLeft means that the keys were typed, or a signal came.
var errLeft = errors.New("left")

// errCutOff means that the daemon has ended the connection, for this reason.
type errCutOff struct{ why string }

func (e *errCutOff) Error() string { return e.why }

// Talk connects the local streams with the other side until that ends, and returns the
// text of its last frame. input is the local input, shared between several calls. The
// error is errLeft, an *errCutOff, or the error of a broken connection, after which the
// other side may continue.
func (l *Local) Talk(ctx context.Context, t *api.Terminal, input *Input, signals <-chan os.Signal, onSignal func(os.Signal) error) (exit string, err error) {
	defer func() { _ = t.Close() }()
	if l.TTY {
		restore := l.raw()
		defer restore()
		_ = t.Resize(l.Size()) // a broken connection is detected below
		defer l.follow(t)()
	}
	ended := make(chan error, 1)
	go func() {
		var err error
		exit, err = l.show(t)
		ended <- err
	}()
	left := make(chan struct{})
	if l.Input {
		defer input.To(t, l.Keys, left)()
	}
	for {
		select {
		case err := <-ended:
			return exit, err
		case <-left:
			return "", errLeft
		case <-ctx.Done():
			return "", ctx.Err()
		case s := <-signals:
			if err := onSignal(s); err != nil {
				return "", err
			}
		}
	}
}

// raw puts the local terminal into raw mode. restore reverts it.
func (l *Local) raw() (restore func()) {
	f, ok := l.In.(*os.File)
	if !ok || !l.Input {
		return func() {}
	}
	was, err := term.MakeRaw(int(f.Fd()))
	if err != nil {
		return func() {} // it is no terminal
	}
	return func() { _ = term.Restore(int(f.Fd()), was) }
}

// follow sends the local terminal's size to the other side whenever it changes.
func (l *Local) follow(t *api.Terminal) (stop func()) {
	changes, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(changes, syscall.SIGWINCH)
	go func() {
		for {
			select {
			case <-changes:
				_ = t.Resize(l.Size())
			case <-done:
				return
			}
		}
	}()
	return func() { signal.Stop(changes); close(done) }
}

// show prints the other side's output.
func (l *Local) show(t *api.Terminal) (exit string, err error) {
	for {
		f, err := t.Read()
		if err != nil {
			return "", &api.NoDaemonError{Err: err}
		}
		switch f.Kind {
		case api.FrameStdout:
			_, err = l.Out.Write(f.Data)
		case api.FrameStderr:
			_, err = l.Err.Write(f.Data)
		case api.FrameExit:
			return string(f.Data), nil
		case api.FrameNote:
			return "", &errCutOff{string(f.Data)}
		}
		if err != nil {
			return "", err
		}
	}
}

// Input reads the input. A terminal's next bytes belong to the connection at that time,
// so one goroutine reads for all connections.
type Input struct {
	data chan []byte // closed at its end
}

// NewInput starts reading.
func NewInput(from io.Reader) *Input {
	in := &Input{data: make(chan []byte)}
	go func() {
		defer close(in.data)
		for {
			buf := make([]byte, 32<<10)
			n, err := from.Read(buf)
			if n > 0 {
				in.data <- buf[:n]
			}
			if err != nil {
				return
			}
		}
	}()
	return in
}

// To sends the input to a connection until stop is called. left is closed when the keys
// have been typed.
func (in *Input) To(t *api.Terminal, keys []byte, left chan<- struct{}) (stop func()) {
	k, done := keyReader{keys: keys}, make(chan struct{})
	go func() {
		for {
			select {
			case <-done:
				return
			case data, more := <-in.data:
				if !more {
					_ = t.Write(api.FrameEnd, nil) // a broken connection is detected elsewhere
					return
				}
				send, leaves := k.pass(data)
				if len(send) > 0 && t.Write(api.FrameInput, send) != nil {
					return
				}
				if leaves {
					close(left)
					return
				}
			}
		}
	}()
	return func() { close(done) }
}
