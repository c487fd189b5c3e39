package api

import (
	"path/filepath"
	"strings"
)

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
