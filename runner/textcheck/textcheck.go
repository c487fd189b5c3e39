// Package textcheck refuses texts of submissions that no program, file system or label can have,
// and names that no task, group or suite can have.
package textcheck

import (
	"fmt"
	"strconv"
	"strings"

	"carma/internal/lazyregexp"
	"carma/runner/api"
	"carma/runner/request"
)

// maxWord is the largest size in bytes of an argument or variable that the kernel passes
// to a program (MAX_ARG_STRLEN).
const maxWord = 128<<10 - 1

// Submit refuses texts that no program, file system or label can have.
func Submit(s api.Submit) error {
	var err error
	check := func(option string, texts ...string) {
		for _, t := range texts {
			if err == nil {
				err = checkText(option, t)
			}
		}
	}
	check("image", s.Image)
	check("--conda", s.Conda)
	check("--venv", s.Venv)
	check("--entrypoint", s.Entrypoint...)
	check("command", s.Command...)
	check("-e", s.Env...)
	check("-w", s.WorkDir)
	check("--user", s.User)
	for _, m := range s.Mounts {
		check("-v", m.Source, m.Target)
	}
	for k, v := range s.Labels { // report the wrong label with the first key
		if e := checkText("-l "+printableKey(k), k+"="+v); e != nil && (err == nil || e.Error() < err.Error()) {
			err = e
		}
	}
	return err
}

func checkText(option, text string) error {
	switch {
	case strings.ContainsRune(text, 0):
		return request.Errorf(422, "%s %s: it has a NUL character, which no program can be given", option, excerpt(text))
	case len(text) > maxWord:
		return request.Errorf(422, "%s %s: %d bytes; a program can be given at most %d in one argument or variable; put it into a file", option, excerpt(text), len(text), maxWord)
	}
	return nil
}

// excerpt returns the beginning of a text, up to the first "=", because a secret may
// follow.
func excerpt(text string) string {
	text, _, _ = strings.Cut(text, "=")
	if r := []rune(text); len(r) > 40 {
		text = string(r[:40]) + "..."
	}
	return fmt.Sprintf("%q", text)
}

func printableKey(k string) string { return strings.Trim(excerpt(k), `"`) }

var taskName = lazyregexp.New(`^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,127}$`)

// IsName reports whether a text has the form of the name of a task.
func IsName(text string) bool { return taskName().MatchString(text) }

// Name refuses a text that cannot be the name of a task or a group. An
// empty name is chosen later.
func Name(option, name string) error {
	switch _, numeric := strconv.Atoi(name); {
	case name == "":
		return nil
	case numeric == nil:
		return request.Errorf(422, "%s %s: a name must not be a number, those are for task ids", option, name)
	case !IsName(name):
		return request.Errorf(422, "%s %q: letters, digits, '_', '.' and '-' only, beginning with a letter or digit, at most 128", option, name)
	}
	return nil
}
