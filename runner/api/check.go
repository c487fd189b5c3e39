package api

import (
	"errors"
	"fmt"
	"strings"

	"carma/configs/models"
)

// FieldError is an error in one field of a submission.
type FieldError struct {
	Field string // its name in flags and files
	Text  string // the problem, and what to do
}

func (e *FieldError) Error() string { return "--" + e.Field + ": " + e.Text }

// Check returns the first error that no daemon could accept, or nil. Errors that depend
// on the user or the machine are left to the daemon.
func (s *Submit) Check() *FieldError {
	wrong := func(field, format string, args ...any) *FieldError {
		return &FieldError{Field: field, Text: fmt.Sprintf(format, args...)}
	}
	if w := s.checkSource(); w != nil {
		return w
	}
	if few := s.Figure(); few != "" {
		switch {
		case s.EstModel != "" && (s.Params > 0 || !weightsFile(s.EstModel)):
			return wrong(few, "it is for a model that carma does not know; leave it or est-model out")
		case s.Params == 0 && s.EstModel == "":
			return wrong(few, "it needs params too; write for example params 25M")
		case s.BatchSize == 0:
			return wrong(few, "it needs batch-size too; write for example batch-size 64")
		case s.Family == "":
			return wrong(few, "it needs family too; write for example family cnn")
		}
		for _, f := range trainingFields() {
			if f.Given(s) {
				return wrong(f.Name, "it is for a model whose layers are known; leave it or %s out", few)
			}
		}
	}
	if _, err := s.Training(); err != nil {
		wrong, _ := errors.AsType[*models.Error](err)
		return &FieldError{Field: wrong.Field, Text: wrong.What}
	}
	switch {
	case len(s.Network) > 0 && s.Model() == "":
		return wrong("est-model", "missing; it names the model of network, for people")
	case s.Probe && s.Mem > 0:
		return wrong("probe", "mem says what it needs; leave one of them out")
	case s.WorkDir != "" && s.WorkDir[0] != '/':
		return wrong("workdir", "%s is not absolute; it is a folder in the container", s.WorkDir)
	case s.Parallel < 0:
		return wrong("parallel", "a limit of %d tasks is not possible; leave it out for no limit", s.Parallel)
	case s.Delay < 0:
		return wrong("delay", "%s is in the past; leave it out for none", s.Delay)
	}
	for _, e := range s.Env {
		if k, _, ok := strings.Cut(e, "="); !ok || k == "" {
			return wrong("env", "%q; write KEY=value", e)
		}
	}
	return s.checkFittings()
}

// weightsFile reports whether a model is a file of weights. The command line replaces
// such a file by its parameters; a daemon has no model of such a name.
func weightsFile(model string) bool {
	return strings.HasSuffix(model, ".safetensors") || strings.HasSuffix(model, ".safetensors.index.json")
}

// Figure returns the name of the first given figure of an unknown model, or "" if there
// is none.
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
