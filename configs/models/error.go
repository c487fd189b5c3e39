package models

import (
	"fmt"
	"strings"

	"carma/internal/suggest"
)

// Error is a fault in a configuration or summary. Its text is one line.
type Error struct {
	File  string // or empty if there is no file
	Line  int    // from 1, or 0 if unknown
	Field string // such as layers[3].type, or empty if no single field has the error
	What  string // the fault and what to do
}

// Error returns the file, line, field and fault in one line.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		if e.File == "" {
			b.WriteString("line ")
		} else {
			b.WriteString(":")
		}
		fmt.Fprintf(&b, "%d", e.Line)
	}
	for _, s := range []string{e.Field, e.What} {
		if s == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteString(": ")
		}
		b.WriteString(s)
	}
	return b.String()
}

// wrong returns an error about a field.
func wrong(field, format string, args ...any) *Error {
	return &Error{Field: field, What: fmt.Sprintf(format, args...)}
}

// in adds the file's name to an error.
func in(file string, err error) error {
	if e, ok := err.(*Error); ok {
		e.File = file
		return e
	}
	return fmt.Errorf("%s: %w", file, err)
}

// choose returns a hint for a word that is not in list.
func choose(word string, list []string) string {
	if near := suggest.Near(word, list); len(near) > 0 {
		return "did you mean " + near[0] + "?"
	}
	return "nearest: " + strings.Join(suggest.Names(word, list, 3), ", ")
}

// Short quotes a word of untrusted input for a message.
func Short(word string) string {
	if len(word) > 40 {
		word = word[:40] + "..."
	}
	return fmt.Sprintf("%q", word)
}

// Clip shortens a name of untrusted input and makes it one line.
func Clip(name string) string {
	quoted := Short(name)
	return quoted[1 : len(quoted)-1]
}
