package containers

import (
	"fmt"
	"strings"
)

// Missing takes a stream's place where a [LogSink] is told that the engine has
// thrown output away before anybody read it. The text is that of [Lines].
const Missing Stream = 3

// Lines tell how much output is missing. The zero value says nothing.
type Lines struct {
	// Lines is how many are missing here; negative: nobody knows.
	Lines int64
	// Before is how many lines the container has printed until here; 0: that
	// is not known. With it, Lines has no meaning.
	Before int64
}

// Text is what a sink is given.
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
