package pairs

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"strconv"
	"strings"
)

// table is a CSV file whose columns are found by name.
type table struct {
	name    string
	header  int // line
	columns map[string]int
	rows    []row
}

type row struct {
	line   int
	values []string
}

// maxSize is the largest size of a file, in bytes.
const maxSize = 16 << 20

func (t *table) errorf(line int, format string, args ...any) error {
	return fmt.Errorf("%s:%d: %s", t.name, line, fmt.Sprintf(format, args...))
}

// Open opens a file for [Read] or [ReadProfiles].
func Open(path string) (*os.File, error) {
	file, err := os.Open(path)
	var failed *fs.PathError
	switch {
	case path == "":
		return nil, errors.New("a file without a name; write for example --pairs measured.csv")
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s: no such file", path)
	case errors.As(err, &failed):
		return nil, fmt.Errorf("%s: %w", path, failed.Err)
	case err != nil:
		return nil, err
	}
	if stat, err := file.Stat(); err == nil && stat.IsDir() {
		file.Close()
		return nil, fmt.Errorf("%s: a folder, not a file", path)
	}
	return file, nil
}

// readTable reads a header and the rows below; lines that begin with # are comments.
func readTable(name string, r io.Reader) (*table, error) {
	t := &table{name: name, header: 1, columns: map[string]int{}}
	content, err := io.ReadAll(io.LimitReader(r, maxSize+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if len(content) > maxSize {
		return nil, fmt.Errorf("%s: larger than %d MiB", name, maxSize>>20)
	}
	c := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(content, []byte("\ufeff"))))
	c.Comment, c.TrimLeadingSpace = '#', true
	c.FieldsPerRecord = -1 // counted here, for a better error message
	for {
		values, err := c.Read()
		var syntax *csv.ParseError
		switch {
		case errors.Is(err, io.EOF) && len(t.columns) == 0:
			return nil, t.errorf(1, "empty; the first line names the columns")
		case errors.Is(err, io.EOF):
			return t, nil
		case errors.As(err, &syntax):
			return nil, t.errorf(syntax.Line, "not CSV: %v", syntax.Err)
		case err != nil:
			return nil, t.errorf(1, "not CSV: %v", err)
		}
		line, _ := c.FieldPos(0)
		if err := t.add(row{line, values}); err != nil {
			return nil, err
		}
	}
}

// add adds the header, then the rows.
func (t *table) add(r row) error {
	if len(t.columns) > 0 {
		if len(r.values) != len(t.columns) {
			return t.errorf(r.line, "%d values for %d columns", len(r.values), len(t.columns))
		}
		t.rows = append(t.rows, r)
		return nil
	}
	t.header = r.line
	for i, name := range r.values {
		name = strings.ToLower(strings.TrimSpace(name))
		if _, ok := t.columns[name]; ok {
			return t.errorf(r.line, "column %q a second time", name)
		}
		t.columns[name] = i
	}
	return nil
}

func (t *table) has(column string) bool {
	_, ok := t.columns[column]
	return ok
}

// need returns an error for the first missing column.
func (t *table) need(columns ...string) error {
	for _, c := range columns {
		if !t.has(c) {
			return t.errorf(t.header, "no column %s", c)
		}
	}
	return nil
}

// text returns a value without surrounding spaces, or "" if the column does not exist.
func (t *table) text(r row, column string) string {
	i, ok := t.columns[column]
	if !ok {
		return ""
	}
	return strings.TrimSpace(r.values[i])
}

// most is larger than any sensible number in these files.
const most = 1e9

// number returns a non-negative value. known is false if it is empty.
func (t *table) number(r row, column string) (value float64, known bool, err error) {
	text := t.text(r, column)
	if text == "" {
		return 0, false, nil
	}
	value, err = strconv.ParseFloat(text, 64)
	switch {
	case err != nil || math.IsNaN(value) || math.IsInf(value, 0):
		return 0, false, t.errorf(r.line, "%s: %q is not a number", column, text)
	case value < 0:
		return 0, false, t.errorf(r.line, "%s: %s is negative", column, text)
	case value > most:
		return 0, false, t.errorf(r.line, "%s: %s is more than %g", column, text, most)
	}
	return value, true, nil
}

// share reads a number from 0 to 1, and reports whether there is one.
func (t *table) share(r row, column string, to *float64) (known bool, err error) {
	*to, known, err = t.number(r, column)
	if err == nil && *to > 1 {
		err = t.errorf(r.line, "%s: %s is more than 1", column, t.text(r, column))
	}
	return known, err
}
