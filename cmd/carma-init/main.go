// Command carma-init is the first program of a parked Docker container. It waits until a
// file appears and then becomes the container's own program. On containerd it is also the
// first process of containers with --init, and connects the input of containers that have
// one. It is one static file, so that it runs in any image.
//
//	carma-init hold FOLDER PROGRAM [ARG...]   wait for FOLDER/release, then run PROGRAM
//	carma-init reap PROGRAM [ARG...]          run PROGRAM, pass signals on, adopt the processes that it leaves
//	carma-init input PIPE PROGRAM [ARG...]    become PROGRAM, whose input is the pipe
//	carma-init show                           print the environment and the GPUs in this container
//	carma-init true                           end with exit code 0
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Exit codes, as in shells and engines.
const (
	exitUsage         = 2
	exitCannotExecute = 126
	exitNotFound      = 127
	exitSignal        = 128
)

// poll is the time between two checks for the file. The file may be created on the other
// side of a mount, where not every file system sends events.
const poll = 5 * time.Millisecond

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	switch {
	case len(args) >= 3 && args[0] == "hold":
		return wait(args[1], args[2:])
	case len(args) >= 2 && args[0] == "reap":
		return reap(args[1:])
	case len(args) >= 3 && args[0] == "input":
		return take(args[1], args[2:])
	case len(args) == 1 && args[0] == "show":
		return show(os.Stdout)
	case len(args) == 1 && args[0] == "true":
		return 0
	}
	fmt.Fprintln(os.Stderr, "carma-init: started by carma, as: hold FOLDER PROGRAM [ARG...], or: reap PROGRAM [ARG...], or: input PIPE PROGRAM [ARG...], or: show, or: true")
	return exitUsage
}

// wait waits for the file and executes the program. It returns only if the program cannot
// run. The argument is called hold, as in containers of older versions.
func wait(folder string, argv []string) int {
	// As the first process of a container it receives only signals that it handles, and a
	// stop must end it.
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2)
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		if _, err := os.Stat(filepath.Join(folder, "release")); err == nil {
			break
		}
		select {
		case s := <-stop:
			return exitSignal + int(s.(syscall.Signal))
		case <-tick.C:
		}
	}
	return become(argv)
}

// take makes a pipe the standard input and executes the program. It returns only if the
// program cannot run. The pipe's writers may have ended already, but their data is in the
// pipe.
func take(pipe string, argv []string) int {
	fd, err := unix.Open(pipe, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err == nil {
		err = unix.SetNonblock(fd, false)
	}
	if err == nil {
		err = unix.Dup3(fd, 0, 0)
	}
	if err != nil {
		return cannot(pipe, err)
	}
	return become(argv)
}

// become executes a program. It returns only if the program cannot run.
func become(argv []string) int {
	path, err := exec.LookPath(argv[0])
	if err == nil || errors.Is(err, exec.ErrDot) {
		err = syscall.Exec(path, argv, os.Environ())
	}
	return cannot(argv[0], err)
}

// cannot prints the reason why a program cannot run, and returns the exit code.
func cannot(program string, err error) int {
	fmt.Fprintf(os.Stderr, "carma-init: %s: %v\n", program, err)
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return exitNotFound
	}
	return exitCannotExecute
}
