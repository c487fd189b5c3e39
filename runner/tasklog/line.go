package tasklog

import (
	"bytes"
	"time"
)

// MaxLine is the largest number of bytes in one line of a log. A longer line is stored in
// pieces, all but the last marked as partial.
const MaxLine = 64 << 10

// Stream is the source of a line.
type Stream uint8

// The streams. The first two have the numbers that package containers uses.
const (
	Stdout Stream = 1
	Stderr Stream = 2
	// Note is a line written by carma and not by the task. It describes missing output
	// and the reason.
	Note Stream = 3
)

var streamNames = [...]string{Stdout: "stdout", Stderr: "stderr", Note: "carma"}

func (s Stream) String() string {
	if s < Stdout || s > Note {
		return "unknown"
	}
	return streamNames[s]
}

// Line is a line of output, or a piece of one.
type Line struct {
	At     time.Time
	Stream Stream
	Text   []byte // without newline
	// Partial is set if the line continues in the next Line of this stream.
	Partial bool
}

// timeFormat has all nine digits, so that lines sort as text.
const timeFormat = "2006-01-02T15:04:05.000000000Z07:00"

// appendLine appends l as it is stored, newline included. The text must contain no
// newline.
func appendLine(b []byte, l Line) []byte {
	b = l.At.UTC().AppendFormat(b, timeFormat)
	b = append(b, ' ')
	b = append(b, l.Stream.String()...)
	if l.Partial {
		b = append(b, " P "...)
	} else {
		b = append(b, " F "...)
	}
	b = append(b, l.Text...)
	return append(b, '\n')
}

// parseLine reads lines of appendLine, without the newline, and lines of other writers of
// the format, with fewer digits and more tags. The text is part of b.
func parseLine(b []byte) (l Line, ok bool) {
	at, b, _ := bytes.Cut(b, []byte(" "))
	stream, b, _ := bytes.Cut(b, []byte(" "))
	tags, text, ok := bytes.Cut(b, []byte(" "))
	if !ok {
		return Line{}, false
	}
	for s := Stdout; s <= Note; s++ {
		if string(stream) == streamNames[s] {
			l.Stream = s
		}
	}
	tag, _, _ := bytes.Cut(tags, []byte(":"))
	if l.Stream == 0 || string(tag) != "F" && string(tag) != "P" {
		return Line{}, false
	}
	t, err := time.Parse(time.RFC3339Nano, string(at))
	if err != nil {
		return Line{}, false
	}
	l.At, l.Text, l.Partial = t.UTC(), text, string(tag) == "P"
	return l, true
}
