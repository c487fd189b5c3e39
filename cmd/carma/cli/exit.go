package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"

	"github.com/spf13/cobra"

	"carma/cmd/carma/settings"
	"carma/runner/api"
)

// Exit codes. A command that stands for a task (an attached run, wait) exits
// with the task's code instead.
const (
	ExitOK     = 0
	ExitFailed = 1
	// ExitUsage means that the request is wrong, or that no daemon answers. Nothing has
	// happened.
	ExitUsage = 2
	// ExitCarma means that carma itself failed, as in docker run.
	ExitCarma = 125
	// ExitDetached means that Ctrl-C left a task running, so its code is unknown.
	ExitDetached = 130
)

// UsageError reports an invalid command line and how to fix it.
type UsageError struct {
	What, Hint string
}

func (e *UsageError) Error() string {
	if e.Hint == "" {
		return e.What
	}
	return e.What + "; " + e.Hint
}

// Usagef returns a *UsageError. An empty hint means no hint.
func Usagef(hint, format string, args ...any) error {
	return &UsageError{fmt.Sprintf(format, args...), hint}
}

// CodeError ends the process with a code. All messages have been printed before.
type CodeError int

func (e CodeError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// Report prints an error as every command does and returns the exit code.
func (a *App) Report(cmd *cobra.Command, err error) int {
	if err == nil {
		return ExitOK
	}
	var done CodeError
	if errors.As(err, &done) {
		return int(done)
	}
	name := "carma"
	if cmd != nil {
		name = cmd.CommandPath()
	}
	text := Describe(err)
	var long interface{ Whole() string } // a journal's refusal
	if errors.As(err, &long) {
		text = long.Whole()
	}
	fmt.Fprintf(a.Err, "%s: %s\n", name, text)
	code := CodeOf(err)
	if code == ExitFailed && cmd != nil && (cmd.Name() == "run" || cmd.Name() == "up" || cmd.Name() == "exec") {
		code = ExitCarma // 1 would be the task's code
	}
	return code
}

// Describe returns an error and its remedy in one line.
func Describe(err error) string { return OneLine(withHint(err)) }

func withHint(err error) string {
	var none *api.NoDaemonError
	if !errors.As(err, &none) {
		return err.Error()
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fmt.Sprintf("no permission to use the daemon's socket %s; ask its owner for access", none.Socket)
	case none.Remote() && !none.Reached():
		return err.Error() + "; CARMA_HOST and CARMA_CA say how it is reached"
	case none.Reached():
		return fmt.Sprintf("the daemon at %s went away before it answered; look with: carma ps", none.Socket)
	}
	return err.Error() + "; start one: carma daemon"
}

// CodeOf returns the exit code for an error.
func CodeOf(err error) int {
	var (
		usage  *UsageError
		config *settings.Error
		none   *api.NoDaemonError
		status *api.StatusError
		wrong  interface{ Usage() bool } // of a journal
	)
	switch {
	case errors.As(err, &usage), errors.As(err, &config):
		return ExitUsage
	case errors.As(err, &none):
		if none.Reached() {
			return ExitCarma
		}
		return ExitUsage
	case errors.As(err, &status):
		// A full disk counts, like a missing daemon, as a wrong environment: the task was
		// refused before anything happened.
		if status.Usage() || status.Status == http.StatusInsufficientStorage {
			return ExitUsage
		}
		return ExitCarma
	case errors.As(err, &wrong) && wrong.Usage():
		return ExitUsage
	case errors.Is(err, context.Canceled):
		return ExitDetached
	}
	return ExitFailed
}

// Each calls fn for every reference, reports failures as they occur and returns the first
// failure's code.
func (a *App) Each(cmd *cobra.Command, refs []string, fn func(ref string) error) error {
	code := ExitOK
	for _, ref := range refs {
		err := fn(ref)
		if err == nil {
			continue
		}
		if c := a.Report(cmd, err); code == ExitOK {
			code = c
		}
		var none *api.NoDaemonError
		if errors.As(err, &none) || errors.Is(err, context.Canceled) {
			break // the others would fail in the same way
		}
	}
	if code != ExitOK {
		return CodeError(code)
	}
	return nil
}
