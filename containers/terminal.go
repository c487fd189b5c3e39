package containers

import (
	"context"
	"io"
	"syscall"
)

// Terminals is a [Driver] that connects people with the programs in its
// containers.
type Terminals interface {
	// Attach connects with the program of a container that was made with
	// [Spec.Stdin] or [Spec.TTY]. A session that is opened between Create and Start
	// gets all output; one that is opened later may lack what came before. For a
	// container that has ended or is gone the error wraps [ErrNotFound].
	Attach(ctx context.Context, id string) (Session, error)
	// Exec runs a command in a running container: as the container's user, with its
	// environment, within its limits, with no more rights than its program has. The
	// command ends with the container at the latest. If the container does not run,
	// the error wraps [ErrNotFound]. That there is no such program may be an error
	// that wraps [ErrInvalid], or the command's output and its code, 126 or 127.
	Exec(ctx context.Context, id string, c Command) (ExecSession, error)
}

// OutputAttacher is a [Driver] whose log has a line only when it ends, or 16 KiB of it.
// A progress bar, which ends its lines with carriage returns, comes late there.
type OutputAttacher interface {
	// AttachOutput connects to one of the two streams of a running container: the
	// session's Copy passes on the output from now on, as it is written. It takes no
	// input, and its Close does not end the input that the program has. The program waits
	// while Copy is not called or its writer does not return, and continues when the
	// session is closed or this process ends. For a container that has ended or is gone
	// the error wraps [ErrNotFound]; an engine that cannot do it gives [ErrUnsupported].
	AttachOutput(ctx context.Context, id string, stream Stream) (Session, error)
}

// Command is a command for [Terminals.Exec].
type Command struct {
	Args []string
	// Env is added to the container's, KEY=value. WorkDir is a folder in the container,
	// the container's own if empty.
	Env     []string
	WorkDir string
	// Stdin: it has an input; else that ends at once. TTY: it has a terminal.
	Stdin, TTY bool
	Size       Size // of the terminal, or zero if unknown
}

// Size is the size of a terminal in characters.
type Size struct {
	Rows uint16 `json:"rows"`
	Cols uint16 `json:"cols"`
}

// Session is a connection with a program. Copy, Write and the other methods may be
// called at the same time.
type Session interface {
	// Copy hands on the output until the program has ended, the connection breaks
	// or a writer fails. Of a terminal all is standard output. It must be called: a
	// program whose output is not taken may have to wait. Call it once.
	Copy(stdout, stderr io.Writer) error
	// Write gives input to the program. It waits while the program takes none.
	io.Writer
	// CloseWrite ends the input. A terminal has no such end: there it does nothing.
	CloseWrite() error
	// Resize sets the terminal's size. For a program without a terminal, or one that
	// has ended or not begun, it does nothing.
	Resize(ctx context.Context, to Size) error
	// Close ends the connection. The program continues.
	io.Closer
}

// ExecSession is a session with a command.
type ExecSession interface {
	Session
	// Signal sends the command a signal. If it has ended, that is no error.
	Signal(ctx context.Context, s syscall.Signal) error
	// Wait returns the command's exit code when it has ended. Call it after Copy.
	Wait(ctx context.Context) (code int, err error)
}
