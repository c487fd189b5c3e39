package containerd

import (
	"net/url"
	"os"

	"github.com/containerd/containerd/v2/pkg/cio"
	"golang.org/x/sys/unix"

	"carma/containers"
	"carma/containers/containerd/logfile"
	"carma/containers/containerd/relay"
)

// talkOf returns the connection of the program's input and output.
func talkOf(spec containers.Spec) logfile.Talk {
	switch {
	case spec.TTY:
		return logfile.TalkTerminal
	case spec.Interactive:
		return logfile.TalkInput
	}
	return logfile.TalkNone
}

func (r *record) talk() logfile.Talk { return logfile.Talk(r.Labels[labelTalk]) }

// makeInput makes the named pipe for the input in a container's folder. If the program
// has a terminal, the shim reads the pipe. Otherwise the program does, so every user of
// the container may open the pipe; nobody else can reach the folder.
func makeInput(dir string) error {
	path := relay.InputPath(dir)
	if err := unix.Mkfifo(path, 0o600); err != nil {
		return &os.PathError{Op: "make pipe", Path: path, Err: err}
	}
	return os.Chmod(path, 0o644)
}

// io returns the connection of the program's input and output for a container's shim. The
// logger reads the output. The shim passes input to a terminal. A program without a
// terminal gets its input from carma-init, because the shim passes none to a program with
// a logger.
func (r *record) io(logger *url.URL) cio.Creator {
	c := cio.Config{Stdout: logger.String(), Stderr: logger.String()}
	if r.talk() == logfile.TalkTerminal {
		c.Terminal, c.Stdin = true, relay.InputPath(r.Labels[labelDir])
	}
	return func(string) (cio.IO, error) { return shimIO{c}, nil }
}

// shimIO is input and output that only the shim handles.
type shimIO struct{ config cio.Config }

func (s shimIO) Config() cio.Config { return s.config }
func (shimIO) Cancel()              {}
func (shimIO) Wait()                {}
func (shimIO) Close() error         { return nil }
