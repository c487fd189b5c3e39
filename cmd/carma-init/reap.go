package main

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// reap runs the program as a child, forwards every signal to it, and reaps its orphans.
// It returns the program's exit code, or 128 plus the signal that ended it.
func reap(argv []string) int {
	path, err := exec.LookPath(argv[0])
	if err != nil && !errors.Is(err, exec.ErrDot) {
		return cannot(argv[0], err)
	}
	signals := make(chan os.Signal, 64)
	signal.Notify(signals) // before the program runs, because a signal may come at once
	// The program has its own process group, so that it receives a terminal's signals once.
	attr := &syscall.SysProcAttr{Setpgid: true}
	if _, err := unix.IoctlGetTermios(0, unix.TCGETS); err == nil {
		attr.Foreground, attr.Ctty = true, 0
	}
	pid, err := syscall.ForkExec(path, argv, &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2}, Sys: attr})
	if err != nil {
		return cannot(argv[0], err)
	}
	for {
		s := (<-signals).(syscall.Signal)
		switch s {
		case syscall.SIGCHLD:
			if code, ended := takeIn(pid); ended {
				return code
			}
		case syscall.SIGURG, syscall.SIGPIPE, syscall.SIGTTIN, syscall.SIGTTOU: // Go's own, and signals from writing its own output
		default:
			_ = syscall.Kill(pid, s)
		}
	}
}

// takeIn reaps all processes that have ended. ended is set if the program is among them.
func takeIn(program int) (code int, ended bool) {
	for {
		var how syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &how, syscall.WNOHANG, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil || pid <= 0:
			return code, ended
		case pid == program && how.Signaled():
			code, ended = exitSignal+int(how.Signal()), true
		case pid == program:
			code, ended = how.ExitStatus(), true
		}
	}
}
