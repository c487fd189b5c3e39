package philly

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"carma/configs/traces/joblog"
)

// splitter splits the array into its elements, one at a time. It also finds the next
// element after a broken one, by two rules. A string ends at the end of its line at the
// latest. And if all jobs so far began with a brace in one column and contained no line
// that begins with a brace in that column, such a brace begins a job.
type splitter struct {
	r    *bufio.Reader
	line int // line of the next byte
	text []byte

	started bool // after the first bracket or brace
	array   bool // inside the array's brackets
	ended   bool

	column, blank int  // column of the next byte; number of blanks at the beginning of its line
	indent        int  // column of the brace that begins a job, or -1 if it is not the first in its line
	deepest       int  // least column of a line's first brace inside the job
	resync        bool // such a brace at a job's column begins the next job
}

func newSplitter(r io.Reader) *splitter {
	return &splitter{r: bufio.NewReaderSize(r, 256<<10), line: 1, indent: -1}
}

// get reads a byte and counts lines.
func (s *splitter) get() (byte, error) {
	c, err := s.r.ReadByte()
	if err != nil {
		return 0, err
	}
	switch {
	case c == '\n':
		s.line++
		s.column, s.blank = 0, 0
	case (c == ' ' || c == '\t') && s.blank == s.column:
		s.column++
		s.blank++
	default:
		s.column++
	}
	return c, nil
}

// unget puts back a byte that is not the end of a line.
func (s *splitter) unget() {
	s.column--
	_ = s.r.UnreadByte() // a byte was just read
}

// next returns the next element and its first line. The bytes are valid until the next
// call. The errors are as in joblog.Table.Next.
func (s *splitter) next() (text []byte, line int, err error) {
	if s.ended {
		return nil, 0, io.EOF
	}
	for {
		c, err := s.get()
		switch {
		case err != nil:
			s.ended = true
			if errors.Is(err, io.EOF) && !s.started {
				return nil, 0, fmt.Errorf("%d: no jobs; a log is an array of them, which begins with [{\"status\"", s.line)
			}
			if errors.Is(err, io.EOF) && s.array {
				return nil, 0, &joblog.LineError{Line: s.line, What: "the file ends before the array does: it may have been cut off"}
			}
			return nil, 0, err
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == ',' && s.started:
		case c == '[' && !s.started:
			s.started, s.array = true, true
		case c == ']' && s.array:
			return nil, 0, s.tail()
		case c == '{':
			s.started = true
			return s.object()
		case !s.started:
			return nil, 0, fmt.Errorf("%d: not a log of jobs: it begins with %q, not with [ or {", s.line, c)
		default:
			return nil, 0, s.stray()
		}
	}
}

// tail checks that nothing comes after the array.
func (s *splitter) tail() error {
	s.ended = true
	for {
		c, err := s.get()
		switch {
		case err != nil:
			return err
		case c != ' ' && c != '\t' && c != '\n' && c != '\r':
			return &joblog.LineError{Line: s.line, What: fmt.Sprintf("%q after the end of the array", c)}
		}
	}
}

// stray skips text that is not a job, up to the end of the line or a brace.
func (s *splitter) stray() error {
	line := s.line
	for {
		c, err := s.get()
		if c == '{' && err == nil {
			s.unget()
		}
		if err != nil || c == '\n' || c == '{' {
			if err != nil && !errors.Is(err, io.EOF) {
				return err
			}
			return &joblog.LineError{Line: line, What: "not a job: an object in braces belongs here"}
		}
	}
}

// object reads up to the brace that closes the last opened one.
func (s *splitter) object() ([]byte, int, error) {
	line, depth, quoted, escaped := s.line, 1, false, false
	own := -1
	if s.blank == s.column-1 {
		own = s.blank
	}
	s.indent, s.deepest = own, 1<<30
	s.text = append(s.text[:0], '{')
	broken := func(what string) ([]byte, int, error) { return nil, 0, &joblog.LineError{Line: line, What: what} }
	for {
		c, err := s.get()
		if err != nil {
			s.ended = true
			if errors.Is(err, io.EOF) {
				return broken("the file ends within the job that begins here")
			}
			return nil, 0, err
		}
		if c == '{' && !quoted && s.blank == s.column-1 {
			if s.resync && s.blank <= own {
				s.unget()
				return broken("a brace of the job that begins here is not closed")
			}
			s.deepest = min(s.deepest, s.blank)
		}
		if len(s.text) <= joblog.MaxEntry {
			s.text = append(s.text, c)
		}
		switch {
		case c == '\n':
			quoted, escaped = false, false
		case escaped:
			escaped = false
		case quoted:
			escaped = c == '\\'
			quoted = c != '"'
		case c == '"':
			quoted = true
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		}
		if depth == 0 {
			if len(s.text) > joblog.MaxEntry {
				return broken(fmt.Sprintf("longer than %d MiB", joblog.MaxEntry>>20))
			}
			return s.text, line, nil
		}
	}
}

// sound is called if the last element was a JSON object. It assumes that later elements
// have the same layout.
func (s *splitter) sound() {
	s.resync = s.indent >= 0 && s.deepest > s.indent
}
