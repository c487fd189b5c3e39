// Command pictures makes an SVG picture of a terminal: of screens that tmux has
// captured with their colours (capture-pane -p -e), one file each, shown one after the
// other.
//
//	pictures -width 120 -height 30 -seconds 4 screen1 screen2 ... > top.svg
package main

import (
	"bufio"
	"flag"
	"fmt"
	"html"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"carma/cmd/carma/cli"
)

// A cell is this many units of the picture; text stands so far below its top.
const (
	cellWidth, cellHeight = 8.4, 18.0
	baseline              = 13.5
	margin                = 12.0
)

// palette are the colours 0 to 7 of a dark terminal, bright enough to read on it.
var palette = []string{"#3b4252", "#ff7b72", "#7ee787", "#e3b341", "#79c0ff", "#d2a8ff", "#76e3ea", "#c9d1d9"}

const paper, ink = "#0d1117", "#c9d1d9"

// look is the style of a cell.
type look struct {
	colour                string
	bold, dim, turnedOver bool
}

func main() {
	width := flag.Int("width", 120, "columns")
	height := flag.Int("height", 30, "rows")
	seconds := flag.Float64("seconds", 4, "how long each screen is shown")
	flag.Parse()
	if err := run(os.Stdout, flag.Args(), *width, *height, *seconds); err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, files []string, width, height int, seconds float64) error {
	if len(files) == 0 {
		return fmt.Errorf("no screens; name files that tmux capture-pane -p -e has written")
	}
	out := bufio.NewWriter(w)
	right, below := float64(width)*cellWidth+2*margin, float64(height)*cellHeight+2*margin
	fmt.Fprintf(out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" font-family="ui-monospace,DejaVu Sans Mono,Menlo,Consolas,monospace" font-size="14" fill="%s">`+"\n", right, below, ink)
	fmt.Fprintf(out, `<rect width="100%%" height="100%%" rx="8" fill="%s"/>`+"\n", paper)
	if len(files) > 1 {
		writeTurns(out, len(files), seconds)
	}
	for i, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, `<g class="s%d" transform="translate(%.0f,%.0f)">`+"\n", i, margin, margin)
		lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
		if len(lines) > height {
			return fmt.Errorf("%s has %d lines, more than %d", name, len(lines), height)
		}
		var now look
		for row, line := range lines {
			now = writeLine(out, line, float64(row)*cellHeight, now)
		}
		fmt.Fprintln(out, "</g>")
	}
	fmt.Fprintln(out, "</svg>")
	return out.Flush()
}

// writeTurns has the screens take turns. Where nothing moves, the first is shown.
func writeTurns(out io.Writer, n int, seconds float64) {
	fmt.Fprintf(out, "<style>@keyframes t{0%%,%.2f%%{visibility:visible}%.2f%%,100%%{visibility:hidden}}\n", 100/float64(n)-0.01, 100/float64(n))
	for i := range n {
		if i > 0 {
			fmt.Fprintf(out, ".s%d{visibility:hidden}", i)
		}
		fmt.Fprintf(out, "@media(prefers-reduced-motion:no-preference){.s%d{visibility:hidden;animation:t %.1fs step-end %.1fs infinite}}\n", i, float64(n)*seconds, float64(i)*seconds)
	}
	fmt.Fprintln(out, "</style>")
}

// writeLine draws a line of a screen, and returns how the next one begins.
func writeLine(out io.Writer, line string, top float64, now look) look {
	column := 0
	var run strings.Builder
	from := 0
	flush := func() {
		if run.Len() > 0 {
			writeRun(out, run.String(), from, column-from, top, now)
		}
		run.Reset()
		from = column
	}
	for line != "" {
		if strings.HasPrefix(line, "\x1b[") {
			codes, rest, _ := strings.Cut(line[2:], "m")
			flush()
			now, line = now.after(codes), rest
			continue
		}
		r, _ := utf8.DecodeRuneInString(line)
		text := string(r)
		if last := run.String(); last != "" && isBlock(last) != isBlock(text) {
			flush()
		}
		run.WriteString(text)
		column += cli.Cells(text)
		line = line[len(text):]
	}
	flush()
	return now
}

func isBlock(text string) string {
	for _, b := range []string{"█", "░"} {
		if strings.HasPrefix(text, b) {
			return b
		}
	}
	return ""
}

// writeRun draws cells that look alike. Blocks are drawn as areas: fonts leave gaps
// between them.
func writeRun(out io.Writer, text string, column, cells int, top float64, how look) {
	left, width := float64(column)*cellWidth, float64(cells)*cellWidth
	colour, opacity := how.colour, 1.0
	if colour == "" {
		colour = ink
	}
	if how.dim {
		opacity = 0.5
	}
	if how.turnedOver {
		fmt.Fprintf(out, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.0f" fill="%s"/>`, left, top, width, cellHeight, colour)
		colour = paper
	}
	if block := isBlock(text); block != "" {
		if block == "░" {
			opacity = 0.35
		}
		fmt.Fprintf(out, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.0f" fill="%s" opacity="%.2g"/>`+"\n", left, top+1, width, cellHeight-2, colour, opacity)
		return
	}
	trimmed := strings.TrimRight(text, " ")
	lead := len(trimmed) - len(strings.TrimLeft(trimmed, " "))
	if trimmed = trimmed[lead:]; trimmed == "" {
		return
	}
	weight := ""
	if how.bold {
		weight = ` font-weight="bold"`
	}
	fmt.Fprintf(out, `<text x="%.1f" y="%.1f" fill="%s" textLength="%.1f" lengthAdjust="spacingAndGlyphs" xml:space="preserve"%s opacity="%.2g">%s</text>`+"\n",
		left+float64(lead)*cellWidth, top+baseline, colour, float64(cli.Cells(trimmed))*cellWidth, weight, opacity, html.EscapeString(trimmed))
}

// after returns the style of cells after an SGR sequence.
func (l look) after(codes string) look {
	for code := range strings.SplitSeq(codes, ";") {
		n, _ := strconv.Atoi(code)
		switch {
		case n == 0:
			l = look{}
		case n == 1:
			l.bold = true
		case n == 2:
			l.dim = true
		case n == 7:
			l.turnedOver = true
		case n == 22:
			l.bold, l.dim = false, false
		case n == 27:
			l.turnedOver = false
		case n >= 30 && n <= 37:
			l.colour = palette[n-30]
		case n >= 90 && n <= 97:
			l.colour = palette[n-90]
		case n == 39:
			l.colour = ""
		}
	}
	return l
}
