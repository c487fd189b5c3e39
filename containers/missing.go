package containers

import (
	"fmt"
	"strings"
)

// Missing is the stream of a mark in a log: the engine has deleted unread output. [Lines]
// makes the mark's text.
const Missing Stream = 3

// Lines is the amount of missing output. The zero value means unknown.
type Lines struct {
	// Lines is the number of lines that are missing here, or negative if unknown.
	Lines int64
	// Before is the number of lines that the container printed before this point, or 0 if
	// unknown. If Before is set, Lines has no meaning.
	Before int64
}

// Text returns the text of the mark for a sink.
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
