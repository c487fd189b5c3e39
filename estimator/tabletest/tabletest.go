// Package tabletest reads the tables of figures with which tests compare estimates.
package tabletest

import (
	"encoding/csv"
	"os"
	"strconv"
	"strings"
	"testing"
)

// Row is one line of a table, by column name. A missing column is empty.
type Row map[string]string

// Rows reads a csv file. Lines that begin with # are comments; the first other line
// contains the column names. The test ends if the file cannot be read, or has no rows.
func Rows(t testing.TB, path string) (rows []Row) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.Comment = '#'
	lines, err := r.ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	if len(lines) < 2 {
		t.Fatalf("%s has no rows", path)
	}
	names := lines[0]
	for _, line := range lines[1:] {
		row := Row{all: strings.Join(line, " ")}
		for i, name := range names {
			row[name] = line[i]
		}
		rows = append(rows, row)
	}
	return rows
}

// all is the key of a row's complete text. No column has an empty name.
const all = ""

// String returns the row as one line of text.
func (r Row) String() string { return r[all] }

// Int returns the number in a column. The test ends if there is none.
func (r Row) Int(t testing.TB, column string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(r[column], 10, 64)
	if err != nil {
		t.Fatalf("%s: column %s: %v", r, column, err)
	}
	return n
}
