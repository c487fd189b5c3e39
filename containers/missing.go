package containers

import (
	"fmt"
	"strings"
)

// Missing is the stream of a mark in a log: the engine has deleted output before
// anybody read it. The mark's text is that of [Lines].
const Missing Stream = 3

// Lines tells how much output is missing. The zero value tells nothing.
type Lines struct {
	// Lines is how many lines are missing here; negative: unknown.
	Lines int64
	// Before is how many lines the container has printed until here; 0: unknown.
	// If it is set, Lines has no meaning.
	Before int64
}

// Text is the text of the mark that a sink gets.
func (l Lines) Text() []byte {
	if l.Before > 0 {
		return fmt.Append(nil, "before ", l.Before)
	}
	return fmt.Append(nil, "lines ", l.Lines)
}

// ParseMissing is the inverse of Text.
func ParseMissing(text []byte) (l Lines, ok bool) {
	kind, _, _ := strings.Cut(string(text), " ")
	n := &l.Lines
	if kind == "before" {
		n = &l.Before
	}
	_, err := fmt.Sscanf(string(text), kind+" %d", n)
	return l, err == nil && (kind == "before" || kind == "lines")
}
