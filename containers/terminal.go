package containers

import (
	"context"
	"io"
	"syscall"
)

// Terminals is a [Driver] that connects users to the programs in its containers.
type Terminals interface {
	// Attach connects to the program of a container that was made with
	// [ContainerOptions].Interactive or TTY. A session opened between Create and Start
	// receives all output; a session opened later may lack earlier output. For a container
	// that has ended or does not exist, the error wraps [ErrNotFound].
	Attach(ctx context.Context, id string) (Session, error)
	// Exec runs a command in a running container: as the container's user, with its
	// environment, within its limits, with no more rights than its program has. The command
	// ends with the container at the latest. If the container does not run, the error wraps
	// [ErrNotFound]. If the command's program does not exist, Exec may return an error that
	// wraps [ErrInvalid], or the command may print a message and exit with 126 or 127.
	Exec(ctx context.Context, id string, c Command) (ExecSession, error)
}

// OutputAttacher is a [Driver] whose log receives a line only when the line ends or has
// 16 KiB. A progress bar, which ends its lines with carriage returns, arrives late in
// such a log.
type OutputAttacher interface {
	// AttachOutput connects to one of the two streams of a running container. The session's
	// Copy passes on the output from now on, as it is written. The session takes no input,
	// and its Close does not end the program's input. The program blocks while Copy is not
	// called or its writer does not return, and continues when the session is closed or this
	// process ends. For a container that has ended or does not exist, the error wraps
	// [ErrNotFound]; on an engine without this feature it wraps [ErrUnsupported].
	AttachOutput(ctx context.Context, id string, stream Stream) (Session, error)
}

// Command is a command for [Terminals.Exec].
type Command struct {
	Args []string
	// Env is added to the container's environment, as KEY=value. WorkDir is a folder in the
	// container, or empty for the container's own.
	Env     []string
	WorkDir string
	// Stdin gives the command an input, which otherwise ends at once. TTY gives it a
	// terminal.
	Stdin, TTY bool
	Size       Size // size of the terminal, or zero if unknown
}

// Size is the size of a terminal in characters.
type Size struct {
	Rows uint16 `json:"rows"`
	Cols uint16 `json:"cols"`
}

// Session is a connection to a program. Copy, Write and the other methods may be called
// concurrently.
type Session interface {
	// Copy passes on the output until the program has ended, the connection breaks or a
	// writer fails. All output of a terminal is standard output. Copy must be called, once:
	// the program may block while its output is not read.
	Copy(stdout, stderr io.Writer) error
	// Write sends input to the program. It blocks while the program does not read.
	io.Writer
	// CloseWrite ends the input. It does nothing for a terminal, whose input has no end.
	CloseWrite() error
	// Resize sets the terminal's size. It does nothing for a program without a terminal, or
	// one that has ended or not begun.
	Resize(ctx context.Context, to Size) error
	// Close ends the connection. The program continues.
	io.Closer
}

// ExecSession is a session with a command.
type ExecSession interface {
	Session
	// Signal sends the command a signal. It returns no error if the command has ended.
	Signal(ctx context.Context, s syscall.Signal) error
	// Wait waits for the command's end and returns its exit code. Call it after Copy.
	Wait(ctx context.Context) (code int, err error)
}
