// Package study replays traces in virtual time under several policies and
// estimators. It measures and compares the results with one task per GPU, with
// bounds that a file sets, and with published results. Its presets are the
// published policies with all their rules.
package study

import "fmt"

// Wrong is a request that cannot be met: it says what is wrong, where, and what to write
// instead.
type Wrong struct{ text string }

func (e *Wrong) Error() string { return e.text }

func wrongf(hint, format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	if hint != "" {
		text += "; " + hint
	}
	return &Wrong{text}
}
