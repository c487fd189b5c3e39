package api

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"carma/internal/lazyregexp"
)

// fittings normalizes the syntax of docker run, by the unit of the field. Each function
// returns the text in a canonical form.
var fittings = map[string]func(string) (string, error){
	"ulimit":   formed(ParseUlimit),
	"tmpfs":    formed(ParseTmpfs),
	"port":     formed(ParsePort),
	"device":   formed(ParseDevice),
	"signal":   signal,
	"hostname": hostname,
	"group":    group,
	"notify":   formed(ParseNotify),

	"oom text":  oomText,
	"exit code": exitCode,
}

func formed[T fmt.Stringer](parse func(string) (T, error)) func(string) (string, error) {
	return func(text string) (string, error) {
		v, err := parse(text)
		return v.String(), err
	}
}

// checkFittings returns the first text of a submission that is not in canonical form.
func (s *Submit) checkFittings() *FieldError {
	for _, f := range fields {
		read := fittings[f.unit]
		if read == nil || !f.Given(s) {
			continue
		}
		texts, list := f.of(s).Interface().([]string)
		if !list {
			texts = []string{f.of(s).String()}
		}
		for i, text := range texts {
			if _, err := read(text); err != nil {
				return &FieldError{Field: f.Name, Text: err.Error()}
			}
			if slices.Contains(texts[:i], text) {
				return &FieldError{Field: f.Name, Text: fmt.Sprintf("%q twice; leave one out", text)}
			}
		}
	}
	return s.checkTogether()
}

// oomText parses a text that occurs in an error of a program.
func oomText(text string) (string, error) {
	if len(strings.TrimSpace(text)) < 4 {
		return "", fmt.Errorf("%q would match too much; write at least 4 letters of the error", text)
	}
	return text, nil
}

// exitCode parses an exit code of a program that failed.
func exitCode(text string) (string, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > 255 {
		return "", fmt.Errorf("%q is no exit code of a failure; write a number from 1 to 255", text)
	}
	return strconv.Itoa(n), nil
}

// checkTogether refuses fittings that contradict each other, or the mounts.
func (s *Submit) checkTogether() *FieldError {
	targets := map[string]string{}
	for _, m := range s.Mounts {
		targets[path.Clean(m.Target)] = "a mount"
	}
	for _, text := range s.Tmpfs {
		t, _ := ParseTmpfs(text)
		if other := targets[t.Target]; other != "" {
			return &FieldError{"tmpfs", fmt.Sprintf("%s is the target of %s too; leave one of them out", t.Target, other)}
		}
		targets[t.Target] = "another tmpfs"
	}
	names := map[string]bool{}
	for _, text := range s.Ulimits {
		u, _ := ParseUlimit(text)
		if names[u.Name] {
			return &FieldError{"ulimit", u.Name + " twice; leave one of them out"}
		}
		names[u.Name] = true
	}
	taken := map[string]bool{}
	for _, text := range s.Ports {
		p, _ := ParsePort(text)
		p.Port = 0
		if at := p.String(); p.Host > 0 && taken[at] {
			return &FieldError{"publish", fmt.Sprintf("port %d of this machine twice; leave one of them out", p.Host)}
		} else {
			taken[at] = true
		}
	}
	if len(s.Notify) > 1 && slices.Contains(s.Notify, "none") {
		return &FieldError{"notify", "none and other events; leave one of them out"}
	}
	return nil
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
