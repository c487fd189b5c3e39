package cli

import (
	"os"
	"os/signal"
	"syscall"
)

// StopSignals receives the signals that stop an attached task. SIGHUP is not one of them,
// because a task outlives the terminal from which it was submitted.
func StopSignals() (chan os.Signal, func()) { return notified(os.Interrupt, syscall.SIGTERM) }

// AttachedSignals receives the same signals as StopSignals, and SIGQUIT (Ctrl-\), which
// leaves the task running.
func AttachedSignals() (chan os.Signal, func()) {
	return notified(os.Interrupt, syscall.SIGTERM, syscall.SIGQUIT)
}

// Leaves reports whether a signal leaves the task running.
func Leaves(s os.Signal) bool { return s == syscall.SIGQUIT }

func notified(signals ...os.Signal) (chan os.Signal, func()) {
	c := make(chan os.Signal, 4)
	signal.Notify(c, signals...)
	return c, func() { signal.Stop(c) }
}
