package top

import (
	"cmp"
	"slices"
	"strings"

	"carma/cmd/carma/cli"
)

// column is a column of a table that fits its width: numbers are never cut. If the
// columns do not fit, the columns of the lowest worth are left out first.
type column struct {
	title string
	short string // the title if there is no room for the other
	right bool
	// least is the width to which it may shrink, or 0 if it never shrinks. share is its
	// weight when width is divided among columns that shrink or grow.
	least, share int
	most         int  // the width to which it may grow, or 0 if it does not
	worth        int  // 0 if always shown
	rare         bool // left out if empty
}

// cell is the content of a column: a text, or the result of draw for a width.
type cell struct {
	text string
	as   sgr
	draw func(width int) string
}

// span is the position of a column: from cell from up to, not including, cell to.
type span struct {
	title    string
	from, to int
}

// grid lays out a table: its titles, their positions, and its rows, each of exactly width
// cells.
func (g *glyphs) grid(columns []column, rows [][]cell, width int) (head string, spans []span, lines []string) {
	shown, widths, gap := chosen(columns, rows, width)
	titles := make([]string, len(shown))
	at := 0
	for i, c := range shown {
		spans = append(spans, span{columns[c].title, at, at + widths[i]})
		at += widths[i] + len(gap)
		text := columns[c].title
		if columns[c].short != "" && cli.Cells(text) > widths[i] {
			text = columns[c].short
		}
		titles[i] = g.aligned(text, widths[i], columns[c].right)
	}
	head = g.fit(strings.Join(titles, gap), width)
	for _, r := range rows {
		parts := make([]string, len(shown))
		room := width
		for i, c := range shown {
			room -= widths[i] + len(gap)
			if r[c].draw != nil {
				parts[i] = r[c].draw(widths[i])
				continue
			}
			parts[i] = r[c].as.of(g.aligned(cli.Printable(r[c].text), widths[i], columns[c].right))
		}
		lines = append(lines, strings.Join(parts, gap)+strings.Repeat(" ", max(0, room+len(gap))))
	}
	return head, spans, lines
}

func (g *glyphs) aligned(text string, width int, right bool) string {
	if right {
		text = g.cut(text, width)
		return strings.Repeat(" ", max(0, width-cli.Cells(text))) + text
	}
	return g.fit(text, width)
}

// chosen returns the shown columns, their widths, and the separator.
func chosen(columns []column, rows [][]cell, width int) (shown, widths []int, gap string) {
	natural := make([]int, len(columns))
	for i, c := range columns {
		natural[i] = max(cli.Cells(cmp.Or(c.short, c.title)), c.least)
		for _, r := range rows {
			natural[i] = max(natural[i], cli.Cells(r[i].text))
		}
		if !c.rare || slices.ContainsFunc(rows, func(r []cell) bool { return r[i].text != "" }) {
			shown = append(shown, i)
		}
	}
	gap = " "
	if width >= 110 {
		gap = "  "
	}
	for {
		sum, worst := -len(gap), -1
		for i, c := range shown {
			if sum += len(gap) + leastOf(columns[c], natural[c]); columns[c].worth > 0 && (worst < 0 || columns[c].worth < columns[shown[worst]].worth) {
				worst = i
			}
		}
		if sum <= width || worst < 0 {
			break
		}
		shown = append(shown[:worst], shown[worst+1:]...)
	}
	sum := len(gap) * (len(shown) - 1)
	for _, c := range shown {
		widths = append(widths, natural[c])
		sum += natural[c]
	}
	fill(columns, shown, widths, width-sum)
	return shown, widths, gap
}

func leastOf(c column, natural int) int {
	if c.least > 0 {
		return min(c.least, natural)
	}
	return natural
}

// fill takes missing width from the shrinking columns, or gives spare width to the
// growing ones.
func fill(columns []column, shown, widths []int, left int) {
	for sign := cmp.Compare(left, 0); left != 0; left -= sign {
		best := -1
		for i, c := range shown {
			switch col := columns[c]; {
			case left < 0 && (col.least == 0 || widths[i] <= col.least), left > 0 && widths[i] >= col.most:
			case best < 0, sign*widths[i]*columns[shown[best]].share < sign*widths[best]*col.share:
				best = i
			}
		}
		if best < 0 {
			return
		}
		widths[best] += sign
	}
}
