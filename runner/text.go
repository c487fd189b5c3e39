package runner

import (
	"fmt"
	"strings"

	"carma/runner/api"
	"carma/runner/request"
)

// maxWord is the largest size in bytes of an argument or variable that the kernel passes
// to a program (MAX_ARG_STRLEN).
const maxWord = 128<<10 - 1

// checkTexts refuses texts that no program, file system or label can have.
func checkTexts(s api.Submit) error {
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
