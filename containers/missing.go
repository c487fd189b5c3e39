package containers

import (
	"fmt"
	"strings"
)

// Missing is the stream of a mark in a log: the engine has deleted output before anybody
// read it. [Lines] makes the mark's text.
const Missing Stream = 3

// Lines says how much output is missing. The zero value is unknown.
type Lines struct {
	// Lines is the number of lines that are missing here, negative if unknown.
	Lines int64
	// Before is the number of lines that the container has printed until here, or 0 if
	// unknown. If it is set, Lines has no meaning.
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
