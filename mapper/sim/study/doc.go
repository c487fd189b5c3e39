// Package study replays traces in virtual time under several policies and estimators. It
// compares the results with one task per GPU, with bounds from a file, and with published
// results. Its presets are the published policies with all their rules.
package study

import "fmt"

// Wrong is a request that cannot be met. Its text contains the fault, its place, and an
// alternative.
type Wrong struct{ text string }

func (e *Wrong) Error() string { return e.text }

func wrongf(hint, format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	if hint != "" {
		text += "; " + hint
	}
	return &Wrong{text}
}
