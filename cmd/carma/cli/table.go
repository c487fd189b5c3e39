package cli

import (
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/term"
)

// Column describes one column of a table.
type Column struct {
	Title string
	Right bool
	// Least is the width to which the column may shrink if the table is too wide, or 0 if it
	// never shrinks.
	Least int
	// Share is the weight of a shrinking column when the remaining width is divided.
	Share int
}

// Table lays out rows in columns that fit a width.
type Table struct {
	Columns []Column
	Rows    [][]string
}

// Add adds a row: a cell for each column.
func (t *Table) Add(cells ...string) {
	for i, c := range cells {
		cells[i] = Printable(c)
	}
	t.Rows = append(t.Rows, cells)
}

// Write prints the table. A width of 0 means no limit.
func (t *Table) Write(w io.Writer, width int) error {
	widths := t.widths(width)
	var b strings.Builder
	line := func(cells []string) {
		var l strings.Builder
		for i, c := range t.Columns {
			if i > 0 {
				l.WriteString("  ")
			}
			cell := Shorten(cells[i], widths[i])
			pad := strings.Repeat(" ", max(0, widths[i]-Cells(cell)))
			if c.Right {
				l.WriteString(pad + cell)
			} else {
				l.WriteString(cell + pad)
			}
		}
		b.WriteString(strings.TrimRight(l.String(), " ") + "\n")
	}
	titles := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		titles[i] = c.Title
	}
	line(titles)
	for _, r := range t.Rows {
		line(r)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// widths returns the width of every column. While the sum is too large, it shrinks the
// column that has the most width for its share.
func (t *Table) widths(limit int) []int {
	widths := make([]int, len(t.Columns))
	sum := 2 * (len(t.Columns) - 1)
	for i, c := range t.Columns {
		widths[i] = Cells(c.Title)
		for _, r := range t.Rows {
			widths[i] = max(widths[i], Cells(r[i]))
		}
		sum += widths[i]
	}
	for ; limit > 0 && sum > limit; sum-- {
		widest := -1
		for i, c := range t.Columns {
			if c.Least == 0 || widths[i] <= c.Least {
				continue
			}
			if widest < 0 || widths[i]*t.Columns[widest].Share > widths[widest]*c.Share {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
	}
	return widths
}

// Natural returns the width of the table if nothing is cut.
func (t *Table) Natural() int {
	sum := 2 * (len(t.Columns) - 1)
	for _, w := range t.widths(0) {
		sum += w
	}
	return sum
}

// WidthOf returns the width of output: the terminal's width, otherwise COLUMNS. Without
// either it returns 0, no limit, because output for a program is not cut.
func WidthOf(w any) int {
	if f, ok := w.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return width
		}
	}
	if width, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && width > 0 {
		return width
	}
	return 0
}

// IsTerminal reports whether the output is a terminal that can move its cursor.
func IsTerminal(w any) bool { return OnTerminal(w) && os.Getenv("TERM") != "dumb" }

// OnTerminal reports whether a stream is a terminal, with any capabilities.
func OnTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
