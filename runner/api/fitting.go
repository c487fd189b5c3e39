package api

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"carma/containers/option"
)

// textSyntaxes read and normalize texts of a submission, by the unit of the field.
var textSyntaxes = map[string]func(string) (string, error){
	"notify":    notify,
	"oom text":  oomText,
	"exit code": exitCode,
}

// textSyntax returns the function that reads a text of a field and returns its canonical
// form, or nil if the unit has no syntax of its own.
func textSyntax(unit string) func(string) (string, error) {
	if read := option.Syntax(unit); read != nil {
		return read
	}
	return textSyntaxes[unit]
}

func notify(text string) (string, error) {
	v, err := ParseNotify(text)
	return v.String(), err
}

// checkFittings returns the first text of a submission that is not in canonical form.
func (s *Submit) checkFittings() *FieldError {
	for _, f := range fields {
		read := textSyntax(f.unit)
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

// checkTogether refuses options that contradict each other, or the mounts.
func (s *Submit) checkTogether() *FieldError {
	targets := map[string]string{}
	for _, m := range s.Mounts {
		targets[path.Clean(m.Target)] = "a mount"
	}
	for _, text := range s.Tmpfs {
		t, _ := option.ParseTmpfs(text)
		if other := targets[t.Target]; other != "" {
			return &FieldError{"tmpfs", fmt.Sprintf("%s is the target of %s too; leave one of them out", t.Target, other)}
		}
		targets[t.Target] = "another tmpfs"
	}
	names := map[string]bool{}
	for _, text := range s.Ulimits {
		u, _ := option.ParseUlimit(text)
		if names[u.Name] {
			return &FieldError{"ulimit", u.Name + " twice; leave one of them out"}
		}
		names[u.Name] = true
	}
	taken := map[string]bool{}
	for _, text := range s.Ports {
		p, _ := option.ParsePort(text)
		p.Port = 0
		if at := p.Text(); p.Host > 0 && taken[at] {
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
