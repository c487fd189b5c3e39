package top

import (
	"strings"

	"carma/cmd/carma/cli"
)

// sgr is a style of text: the parameters of a terminal's SGR sequence. Only the sixteen
// standard colours are used. bubbletea removes them if the terminal has none, or NO_COLOR
// is set; bold and reverse remain.
type sgr string

const (
	plain  sgr = ""
	bold   sgr = "1"
	dim    sgr = "2"
	marked sgr = "7"
	bad    sgr = "1;31"
	good   sgr = "32"
	warn   sgr = "33"
	title  sgr = "1;36"
)

// of returns a text in this style.
func (s sgr) of(text string) string {
	if s == plain || text == "" {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[m"
}

// hues distinguish neighbours in a bar.
var hues = []sgr{"32", "36", "34", "35", "33"}

// glyphs contains the characters of bars and curves.
type glyphs struct {
	used, booked, foreign, free string
	steps                       []rune // of a curve, lowest first
	more                        string // for a cut text
}

var (
	unicodeGlyphs = glyphs{"█", "░", "x", "·", []rune(" ▁▂▃▄▅▆▇█"), "…"}
	asciiGlyphs   = glyphs{"#", "=", "x", ".", []rune(" .:-=+*%#"), "~"}
)

// fit cuts or pads a text to a number of cells.
func (g *glyphs) fit(text string, width int) string {
	text = g.cut(text, width)
	return text + strings.Repeat(" ", max(0, width-cli.Cells(text)))
}

// cut shortens a text to a number of cells. It never cuts a number in a sentence.
func (g *glyphs) cut(text string, width int) string {
	if cli.Cells(text) <= width {
		return g.plain(text)
	}
	text = strings.TrimSuffix(cli.Shorten(text, width), "…")
	if at := strings.LastIndexByte(text, ' '); at > 0 && strings.ContainsAny(text[at:], "0123456789") {
		text = text[:at]
	}
	if width < 1 {
		return ""
	}
	return g.plain(text + "…")
}

// plain replaces the glyphs' own character for a cut text.
func (g *glyphs) plain(text string) string {
	if g.more != "…" {
		return strings.ReplaceAll(text, "…", g.more)
	}
	return text
}

// wrapped wraps a text to lines of at most width cells, at spaces if possible, because a
// number must not be cut. Later lines are indented like the first.
func wrapped(text string, width int) (lines []string) {
	if cli.Cells(text) <= width {
		return []string{text}
	}
	indent := text[:len(text)-len(strings.TrimLeft(text, " "))]
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = indent + word
		case cli.Cells(line)+1+cli.Cells(word) <= width:
			line += " " + word
		default:
			lines = append(lines, line)
			line = indent + word
		}
		for cli.Cells(line) > width && width > 0 { // one long word: a path
			head := strings.TrimSuffix(cli.Shorten(line, width+1), "…")
			if head == "" {
				break
			}
			lines, line = append(lines, head), line[len(head):]
		}
	}
	return append(lines, line)
}
