package joblog

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"carma/internal/suggest"
)

// Table reads comma-separated values with a header, line by line, so that a broken line
// does not affect other lines. A quoted value must be on one line.
type Table struct {
	r       *bufio.Reader
	line    int
	columns map[string]int // only for look-up
	count   int
	values  []string
	text    []byte
}

// NewTable reads the header. The order and the case of the columns' names do not matter.
// The columns in need are required. Lines that begin with # are ignored.
func NewTable(r io.Reader, need ...string) (*Table, error) {
	t := &Table{r: bufio.NewReaderSize(r, 64<<10), columns: map[string]int{}}
	line, err := t.read()
	if errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("1: empty; the first line names columns: %s", strings.Join(need, ","))
	} else if err != nil {
		return nil, err
	}
	names, err := split(line, nil)
	if err != nil {
		return nil, fmt.Errorf("%d: %w", t.line, err)
	}
	for i, name := range names {
		names[i] = strings.ToLower(strings.TrimSpace(name))
		if _, twice := t.columns[names[i]]; twice {
			return nil, fmt.Errorf("%d: column %.40q a second time", t.line, names[i])
		}
		t.columns[names[i]] = i
	}
	t.count = len(names)
	for _, name := range need {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("%d: no column %s; nearest: %.40s", t.line, name, suggest.Names(name, names, 1)[0])
		}
	}
	return t, nil
}

// Has reports whether the table has a column.
func (t *Table) Has(column string) bool { _, ok := t.columns[column]; return ok }

// Next goes to the next line that is not empty. It returns io.EOF after the last line. A
// *[LineError] means that this line is broken and the next line can be read. Any other
// error is final.
func (t *Table) Next() error {
	line, err := t.read()
	if err != nil {
		return err
	}
	if t.values, err = split(line, t.values[:0]); err != nil {
		return &LineError{t.line, err.Error()}
	}
	if len(t.values) != t.count {
		return &LineError{t.line, fmt.Sprintf("%d values for %d columns", len(t.values), t.count)}
	}
	return nil
}

// Rows reads the rest of a table. It calls add for the rows that parse accepts, in order,
// and broken for all other rows. It fails only if reading fails.
func Rows[T any](t *Table, parse func(*Table) (T, error), add func(T), broken func(line int, what string)) error {
	for {
		var bad *LineError
		switch err := t.Next(); {
		case errors.Is(err, io.EOF):
			return nil
		case errors.As(err, &bad):
			broken(bad.Line, bad.What)
			continue
		case err != nil:
			return err
		}
		if row, err := parse(t); err != nil {
			broken(t.Line(), err.Error())
		} else {
			add(row)
		}
	}
}

// GPUs returns the number of GPUs in a column, which must be at least least.
func (t *Table) GPUs(column string, least int) (int, error) {
	n, err := strconv.Atoi(t.Get(column))
	if err != nil || n < least || n > MaxGPUs {
		return 0, fmt.Errorf("%s %.40q is not a whole number from %d to %d", column, t.Get(column), least, MaxGPUs)
	}
	return n, nil
}

// Line returns the number of the current line.
func (t *Table) Line() int { return t.line }

// Get returns the value in a column, or "" if there is no such column. The value stays
// valid after Next.
func (t *Table) Get(column string) string {
	i, ok := t.columns[column]
	if !ok {
		return ""
	}
	return strings.TrimSpace(t.values[i])
}

// LineError reports a broken line.
type LineError struct {
	Line int
	What string
}

// Error returns the number of the line and the fault.
func (e *LineError) Error() string { return fmt.Sprintf("%d: %s", e.Line, e.What) }

// read returns the next line that is neither empty nor a comment, without its
// end.
func (t *Table) read() (string, error) {
	for {
		text, long, err := t.rawLine()
		if err != nil {
			return "", err
		}
		if t.line++; t.line == 1 {
			text = bytes.TrimPrefix(text, []byte("\ufeff"))
		}
		switch {
		case long:
			return "", &LineError{t.line, fmt.Sprintf("longer than %d MiB", MaxEntry>>20)}
		case len(bytes.TrimSpace(text)) > 0 && text[0] != '#':
			return string(text), nil
		}
	}
}

// rawLine reads a line. If it is too long, its text is dropped.
func (t *Table) rawLine() (text []byte, long bool, err error) {
	t.text = t.text[:0]
	for {
		part, err := t.r.ReadSlice('\n')
		if t.text = append(t.text, part...); len(t.text) > MaxEntry {
			t.text, long = t.text[:0], true
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if errors.Is(err, io.EOF) && (long || len(t.text) > 0) {
			err = nil
		}
		return bytes.TrimRight(t.text, "\r\n"), long, err
	}
}

// split splits a line into values. Only a line with quotes needs encoding/csv,
// which is slow for single lines.
func split(line string, into []string) ([]string, error) {
	if !strings.Contains(line, `"`) {
		for {
			value, rest, more := strings.Cut(line, ",")
			if into = append(into, value); !more {
				return into, nil
			}
			line = rest
		}
	}
	r := csv.NewReader(strings.NewReader(line))
	r.TrimLeadingSpace = true
	values, err := r.Read()
	var e *csv.ParseError
	if errors.As(err, &e) {
		err = e.Err
	}
	if err != nil {
		return nil, fmt.Errorf("not CSV: %w", err)
	}
	return values, nil
}
