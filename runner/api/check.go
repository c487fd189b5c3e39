package api

import (
	"fmt"
	"strings"
)

// FieldError is what is wrong with one field of a submission.
type FieldError struct {
	Field string // its name in flags and files
	Text  string // what is wrong, and what to do
}

func (e *FieldError) Error() string { return "--" + e.Field + ": " + e.Text }

// Check finds what nobody can ask for, whatever machine it is for, and returns
// the first, or nil. What depends on who asks, and of which machine, the daemon
// checks.
func (s *Submit) Check() *FieldError {
	wrong := func(field, format string, args ...any) *FieldError {
		return &FieldError{Field: field, Text: fmt.Sprintf(format, args...)}
	}
	if strings.TrimSpace(s.Image) == "" {
		return wrong("image", "missing; a task runs a container image")
	}
	if few := s.Figure(); few != "" {
		switch {
		case s.EstModel != "":
			return wrong(few, "it is for a model that carma does not know; leave it or est-model away")
		case s.Params == 0:
			return wrong(few, "it needs params too; write for example params 25M")
		case s.BatchSize == 0:
			return wrong(few, "it needs batch-size too; write for example batch-size 64")
		case s.Family == "":
			return wrong(few, "it needs family too; write for example family cnn")
		}
	}
	switch {
	case s.Probe && s.Mem > 0:
		return wrong("probe", "mem says what it needs; leave one of them out")
	case s.WorkDir != "" && s.WorkDir[0] != '/':
		return wrong("workdir", "%s is not absolute; it is a folder in the container", s.WorkDir)
	case s.Parallel < 0:
		return wrong("parallel", "a limit of %d tasks cannot be; leave it out for none", s.Parallel)
	case s.Delay < 0:
		return wrong("delay", "%s is in the past; leave it out for none", s.Delay)
	}
	for _, e := range s.Env {
		if k, _, ok := strings.Cut(e, "="); !ok || k == "" {
			return wrong("env", "%q; write KEY=value", e)
		}
	}
	return nil
}

// Figure is the name of the first figure of an unknown model that is given;
// empty: none.
func (s *Submit) Figure() string {
	switch {
	case s.Params > 0:
		return "params"
	case s.Family != "":
		return "family"
	case s.Input > 0:
		return "input"
	case s.Layers > 0:
		return "layers"
	}
	return ""
}
