// Package study replays traces in virtual time under several policies and
// estimators, measures, and compares: with one task per GPU, with bounds that a
// file sets, and with what was published. It has the published policies with all
// their rules, the presets.
package study

import "fmt"

// Wrong is a request that cannot be met as it stands: what is wrong, where, and
// what to write.
type Wrong struct{ text string }

func (e *Wrong) Error() string { return e.text }

func wrongf(hint, format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	if hint != "" {
		text += "; " + hint
	}
	return &Wrong{text}
}
