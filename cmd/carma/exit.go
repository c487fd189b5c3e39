package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"carma/configs"
	"carma/configs/nearest"
	"carma/mapper/sim/study"
	"carma/runner/api"
	"carma/runner/journal"
)

// Exit codes. A command that stands for a task (an attached run, wait) exits
// with the task's code instead.
const (
	exitOK     = 0
	exitFailed = 1
	// exitUsage: the request is wrong as it stands, or there is nobody to
	// make it to; nothing has happened.
	exitUsage = 2
	// exitCarma: carma itself could not do it, as docker run has it.
	exitCarma = 125
	// exitDetached: Ctrl-C left a task running, so its code is not known.
	exitDetached = 130
)

// usageError is a wrong command line: what is wrong, and what to do.
type usageError struct {
	what, hint string
}

func (e *usageError) Error() string {
	if e.hint == "" {
		return e.what
	}
	return e.what + "; " + e.hint
}

func usagef(hint, format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...), hint}
}

// codeError ends the process with a code. What there was to say is said.
type codeError int

func (e codeError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// report prints an error the way every command does and returns the exit code.
func (a *app) report(cmd *cobra.Command, err error) int {
	if err == nil {
		return exitOK
	}
	var done codeError
	if errors.As(err, &done) {
		return int(done)
	}
	name := "carma"
	if cmd != nil {
		name = cmd.CommandPath()
	}
	text := oneLine(describe(err))
	if r, ok := errors.AsType[*journal.Refusal](err); ok {
		text = r.Error() // several lines: what is known, and the command that goes on
	}
	fmt.Fprintf(a.err, "%s: %s\n", name, text)
	code := codeOf(err)
	if code == exitFailed && cmd != nil && (cmd.Name() == "run" || cmd.Name() == "up") {
		code = exitCarma // 1 would be the task's
	}
	return code
}

// describe is the message with its hint.
func describe(err error) string {
	var none *api.NoDaemonError
	if !errors.As(err, &none) {
		return err.Error()
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fmt.Sprintf("no permission to use the daemon's socket %s; ask its owner for access", none.Socket)
	case none.Reached():
		return fmt.Sprintf("the daemon at %s went away before it answered; look with: carma ps", none.Socket)
	}
	return err.Error() + "; start one: carma daemon"
}

func codeOf(err error) int {
	var (
		usage  *usageError
		config *configs.Error
		none   *api.NoDaemonError
		status *api.StatusError
		refuse *journal.Refusal
		wrong  *study.Wrong
	)
	switch {
	case errors.As(err, &usage), errors.As(err, &config), errors.As(err, &refuse), errors.As(err, &wrong):
		return exitUsage
	case errors.As(err, &none):
		if none.Reached() {
			return exitCarma
		}
		return exitUsage
	case errors.As(err, &status):
		// A full disk is, like a missing daemon, the wrong environment: the
		// task was refused before anything happened.
		if status.Usage() || status.Status == http.StatusInsufficientStorage {
			return exitUsage
		}
		return exitCarma
	case errors.Is(err, context.Canceled):
		return exitDetached
	}
	return exitFailed
}

func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }), " ")
}

// each runs fn for every reference, reports failures as they come and returns
// the first one's code.
func (a *app) each(cmd *cobra.Command, refs []string, fn func(ref string) error) error {
	code := exitOK
	for _, ref := range refs {
		err := fn(ref)
		if err == nil {
			continue
		}
		if c := a.report(cmd, err); code == exitOK {
			code = c
		}
		var none *api.NoDaemonError
		if errors.As(err, &none) || errors.Is(err, context.Canceled) {
			break // the others would fail alike
		}
	}
	if code != exitOK {
		return codeError(code)
	}
	return nil
}

// tasks checks that at least one task is named.
func tasks(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usagef("write for example: "+cmd.CommandPath()+" 17", "no task named")
	}
	return noEmpty(args)
}

// tasksOrGroup wants tasks, or the flag --group.
func tasksOrGroup(cmd *cobra.Command, args []string) error {
	if group, _ := cmd.Flags().GetString("group"); cmd.Flags().Changed("group") {
		switch {
		case group == "":
			return usagef("carma ps tells their names", "--group names no group")
		case len(args) > 0:
			return usagef("give one of them", "--group %s and task %s", group, args[0])
		}
		return nil
	}
	return tasks(cmd, args)
}

func oneTask(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usagef("name one", "%d tasks named", len(args))
	}
	return tasks(cmd, args)
}

func noArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("it takes none", "unexpected argument %q", args[0])
	}
	return nil
}

func noEmpty(args []string) error {
	if slices.Contains(args, "") {
		return usagef("tasks have a number and a name", "empty task name")
	}
	return nil
}

// unknownCommand is the error for a name that is no command of parent's.
func unknownCommand(parent *cobra.Command, name string) error {
	var names []string
	for _, c := range parent.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	if !parent.HasParent() {
		if ours, ok := otherWords[name]; ok {
			return usagef("did you mean carma "+ours+"?", "unknown command %q", name)
		}
	}
	if near := nearest.Near(name, names); len(near) > 0 {
		return usagef("did you mean "+parent.CommandPath()+" "+near[0]+"?", "unknown command %q", name)
	}
	return usagef(parent.CommandPath()+" --help lists them", "unknown command %q", name)
}

// otherWords are docker's and other runners' for what carma calls otherwise.
var otherWords = map[string]string{
	"list": "ps", "ls": "ps", "status": "ps", "queue": "ps", "kill": "stop", "cancel": "stop", "submit": "run", "top": "gpus",
}

// wrongFlag turns pflag's message into what and hint.
func wrongFlag(cmd *cobra.Command, err error) error {
	if !cmd.HasParent() && cmd.Flags().NArg() > 0 {
		return unknownCommand(cmd, cmd.Flags().Arg(0)) // its flags are unknown too
	}
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		name := unknown.GetSpecifiedName()
		if hint := dockerFlag(cmd, name); hint != "" {
			return usagef(hint, "no flag %s", dashed(name, unknown.GetSpecifiedShortnames() != ""))
		}
		if unknown.GetSpecifiedShortnames() != "" {
			return usagef(cmd.CommandPath()+" --help lists the flags", "unknown flag -%s", name)
		}
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				names = append(names, f.Name)
			}
		})
		hint := cmd.CommandPath() + " --help lists the flags"
		if near := nearest.Near(name, names); len(near) > 0 {
			hint = "did you mean --" + near[0] + "?"
		}
		return usagef(hint, "unknown flag --%s", name)
	}
	var value *pflag.InvalidValueError
	if errors.As(err, &value) {
		what := errors.Unwrap(value)
		if what == nil {
			what = errors.New("wrong value")
		}
		return usagef("", "--%s: %s", value.GetFlag().Name, plainNumber(what.Error(), value))
	}
	var missing *pflag.ValueRequiredError
	if errors.As(err, &missing) {
		return usagef("", "--%s needs a value", missing.GetFlag().Name)
	}
	return usagef("", "%s", err.Error())
}

// plainNumber replaces the messages of package strconv.
func plainNumber(what string, e *pflag.InvalidValueError) string {
	if !strings.HasPrefix(what, "strconv.") {
		return what
	}
	kind := map[string]string{"int": "a whole number", "bool": "true or false", "float64": "a number", "uint64": "a whole number from 0 on"}[e.GetFlag().Value.Type()]
	return fmt.Sprintf("%q is not %s", e.GetValue(), kind)
}

func dashed(name string, short bool) string {
	if short {
		return "-" + name
	}
	return "--" + name
}

// dockerFlag says what to do without a flag of docker run's that carma lacks.
func dockerFlag(cmd *cobra.Command, name string) string {
	if cmd.Name() != "run" {
		return ""
	}
	return map[string]string{
		"rm": "containers are removed anyway; the output stays until carma rm",
		"i":  "tasks have no input", "interactive": "tasks have no input",
		"t": "tasks have no terminal", "tty": "tasks have no terminal",
		"u": "a task runs as you", "user": "a task runs as you",
		"privileged": "tasks get no extra privileges", "cap-add": "tasks get no extra privileges",
		"network": "the daemon's setting: carma daemon --network", "net": "the daemon's setting: carma daemon --network",
		"device": "carma gives a task its GPUs; see --gpus", "runtime": "carma gives a task its GPUs; see --gpus",
		"m": "--mem is GPU memory; host memory has no limit", "memory": "--mem is GPU memory; host memory has no limit",
		"restart": "see --retries",
	}[name]
}
