package cli

import "github.com/charmbracelet/x/ansi"

// Cells returns the number of terminal cells of a text.
func Cells(s string) int {
	n := ascii(s)
	if n == len(s) {
		return n
	}
	return n + ansi.StringWidthWc(s[n:])
}

// Shorten cuts a text to a number of cells, the last of them "…".
func Shorten(s string, width int) string {
	switch {
	case Cells(s) <= width:
		return s
	case 0 < width && width <= ascii(s):
		return s[:width-1] + "…"
	}
	return ansi.TruncateWc(s, max(0, width), "…")
}

// ascii returns the number of printable ASCII bytes at the beginning. Most texts are entirely
// ASCII. Without it, drawing a screen of carma top takes 20 % longer.
func ascii(s string) (n int) {
	for n < len(s) && ' ' <= s[n] && s[n] <= '~' {
		n++
	}
	return n
}
