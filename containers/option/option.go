// Package option reads and writes the texts of those options of docker run that have a
// syntax of their own. It knows no engine: which options a driver supports is in package
// containers, which of them a user may have in package runner.
package option

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"carma/internal/lazyregexp"
)

// syntaxes read the texts of options as docker run does, and return their canonical form.
var syntaxes = map[string]func(string) (string, error){
	"ulimit":   normalized(ParseUlimit, Ulimit.String),
	"tmpfs":    normalized(ParseTmpfs, Tmpfs.String),
	"port":     normalized(ParsePort, Port.Text),
	"device":   normalized(ParseDevice, Device.String),
	"signal":   signal,
	"hostname": hostname,
	"group":    group,
}

// Syntax returns the function that reads a text of an option and returns its canonical
// form, by the unit tag of the option's field. Syntax returns nil if the unit has no syntax
// of its own.
func Syntax(unit string) func(text string) (string, error) { return syntaxes[unit] }

// Name returns the name of an option in flags and files, from the tags of its field: the
// tag name, else the JSON name with dashes.
func Name(tags reflect.StructTag) string {
	if name := tags.Get("name"); name != "" {
		return name
	}
	inJSON, _, _ := strings.Cut(tags.Get("json"), ",")
	return strings.ReplaceAll(inJSON, "_", "-")
}

// Each parses the texts of an option. It leaves out texts that cannot be parsed; Check of
// containers.Spec refuses them.
func Each[T any](texts []string, parse func(string) (T, error)) (all []T) {
	for _, text := range texts {
		if v, err := parse(text); err == nil {
			all = append(all, v)
		}
	}
	return all
}

func normalized[T any](parse func(string) (T, error), text func(T) string) func(string) (string, error) {
	return func(s string) (string, error) {
		v, err := parse(s)
		return text(v), err
	}
}

// signal parses a signal's name or number and returns its name.
func signal(text string) (string, error) {
	if n, err := strconv.Atoi(text); err == nil && n > 0 && n < 65 {
		if name := unix.SignalName(unix.Signal(n)); name != "" {
			return name, nil
		}
		return text, nil // a real-time signal
	}
	name := "SIG" + strings.TrimPrefix(strings.ToUpper(text), "SIG")
	if unix.SignalNum(name) == 0 {
		return "", fmt.Errorf("%q is no signal; write for example SIGINT", text)
	}
	return name, nil
}

var hostLabel = lazyregexp.New(`^[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?$`)

// hostname parses the name of a machine, as accepted by the kernel and resolvers.
func hostname(text string) (string, error) {
	for label := range strings.SplitSeq(text, ".") {
		if !hostLabel().MatchString(label) || len(text) > 63 {
			return "", fmt.Errorf("%q: letters, digits and '-', in words with dots between them, at most 63; write for example box-1", text)
		}
	}
	return text, nil
}

var groupName = lazyregexp.New(`^[a-zA-Z0-9_][a-zA-Z0-9_.-]*$`)

// group parses the name or number of a group. The daemon checks that it exists.
func group(text string) (string, error) {
	if !groupName().MatchString(text) || len(text) > 64 {
		return "", errors.New(strconv.Quote(text) + " is not the name or number of a group; id -Gn lists yours")
	}
	return text, nil
}
