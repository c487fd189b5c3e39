package main

import (
	"io"
	"os"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// column describes one column of a table.
type column struct {
	title string
	right bool
	// least is the width to which the column may shrink when the table is too
	// wide; 0: it never does.
	least int
	// share is how much of the room a shrinking column gets beside others.
	share int
}

// table lays out rows in columns that fit a width.
type table struct {
	columns []column
	rows    [][]string
}

func (t *table) add(cells ...string) {
	for i, c := range cells {
		cells[i] = printable(c)
	}
	t.rows = append(t.rows, cells)
}

// write prints the table. A width of 0 is no limit.
func (t *table) write(w io.Writer, width int) error {
	widths := t.widths(width)
	var b strings.Builder
	line := func(cells []string) {
		var l strings.Builder
		for i, c := range t.columns {
			if i > 0 {
				l.WriteString("  ")
			}
			cell := shorten(cells[i], widths[i])
			pad := strings.Repeat(" ", max(0, widths[i]-utf8.RuneCountInString(cell)))
			if c.right {
				l.WriteString(pad + cell)
			} else {
				l.WriteString(cell + pad)
			}
		}
		b.WriteString(strings.TrimRight(l.String(), " ") + "\n")
	}
	titles := make([]string, len(t.columns))
	for i, c := range t.columns {
		titles[i] = c.title
	}
	line(titles)
	for _, r := range t.rows {
		line(r)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// widths gives every column what it needs and, while that is too much, takes
// from the shrinking column that has most for its share.
func (t *table) widths(limit int) []int {
	widths := make([]int, len(t.columns))
	sum := 2 * (len(t.columns) - 1)
	for i, c := range t.columns {
		widths[i] = utf8.RuneCountInString(c.title)
		for _, r := range t.rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(r[i]))
		}
		sum += widths[i]
	}
	for ; limit > 0 && sum > limit; sum-- {
		widest := -1
		for i, c := range t.columns {
			if c.least == 0 || widths[i] <= c.least {
				continue
			}
			if widest < 0 || widths[i]*t.columns[widest].share > widths[widest]*c.share {
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

// natural is the width of the table when nothing is cut.
func (t *table) natural() int {
	sum := 2 * (len(t.columns) - 1)
	for _, w := range t.widths(0) {
		sum += w
	}
	return sum
}

// shorten cuts a text to a number of characters, the last of them "…".
func shorten(s string, width int) string {
	if utf8.RuneCountInString(s) <= width {
		return s
	}
	if width < 1 {
		return ""
	}
	return string([]rune(s)[:width-1]) + "…"
}

// printable replaces what could move the cursor or end the line: reasons and
// messages come out of containers.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
}

// defaultWidth is that of output that goes to no terminal.
const defaultWidth = 80

// widthOf returns how wide output may be: the terminal's width, else COLUMNS,
// else 80.
func widthOf(w any) int {
	if f, ok := w.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return width
		}
	}
	if width, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && width > 0 {
		return width
	}
	return defaultWidth
}

// isTerminal reports whether people look at the output as it comes.
func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
}
