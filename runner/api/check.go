package api

import (
	"errors"
	"fmt"
	"path/filepath"
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

// Bare reports whether a task runs without an image.
func (s *Submit) Bare() bool { return s.Conda != "" || s.Venv != "" || s.Host }

// Source returns the task's image, or the environment that it uses instead, for people.
func (s *Submit) Source() string {
	switch {
	case s.Conda != "":
		return "conda:" + s.Conda
	case s.Venv != "":
		return "venv:" + s.Venv
	case s.Host:
		return "host"
	}
	return s.Image
}

// Stem returns the last part of the name of the image or environment, without a tag.
func (s *Submit) Stem() string {
	if s.Bare() {
		if folder := strings.TrimSuffix(s.Conda+s.Venv, "/.venv"); folder != "" {
			return filepath.Base(folder)
		}
		return filepath.Base(strings.Join(s.Command[:min(1, len(s.Command))], ""))
	}
	name := s.Image[strings.LastIndexByte(s.Image, '/')+1:]
	if i := strings.IndexAny(name, ":@"); i > 0 {
		name = name[:i]
	}
	return name
}

// checkSource returns the error in a task's choice of image or environment, or nil.
func (s *Submit) checkSource() *FieldError {
	wrong := func(field, text string) *FieldError { return &FieldError{Field: field, Text: text} }
	var given []string
	for _, c := range []struct {
		name  string
		there bool
	}{{"conda", s.Conda != ""}, {"venv", s.Venv != ""}, {"host", s.Host}} {
		if c.there {
			given = append(given, c.name)
		}
	}
	switch {
	case len(given) == 0 && strings.TrimSpace(s.Image) == "":
		return wrong("image", "missing; a task runs a container image, or without one with conda, venv or host")
	case len(given) == 0:
		return nil
	case s.Image != "":
		return wrong(given[0], "it takes the place of the image "+s.Image+"; leave one of them out")
	case len(given) > 1:
		return wrong(given[1], "it does not go with "+given[0]+"; leave one of them out")
	case len(s.Entrypoint) > 0:
		return wrong("entrypoint", "it replaces an image's, and there is none; write the program as the command")
	case s.Pull != "":
		return wrong("pull", "without an image there is nothing to fetch; leave it out")
	case len(s.Command) == 0 || s.Command[0] == "":
		return wrong(given[0], "no program named; write for example python train.py behind it")
	}
	return nil
}
