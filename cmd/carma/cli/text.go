package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"carma/internal/units"
)

// Printable replaces characters that could move the cursor or end the line, because
// reasons and messages come from containers.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
}

// OneLine replaces line breaks by spaces.
func OneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }), " ")
}

// Count returns a text like 1 task or 3 tasks.
func Count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return strconv.Itoa(n) + " " + what
}

// Ordinal returns 1st, 2nd, 3rd, 4th and so on.
func Ordinal(n int) string {
	suffix := "th"
	if n%100 < 11 || n%100 > 13 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return strconv.Itoa(n) + suffix
}

// Age formats a time in at most two units: 42s, 12m, 3h04m, 5d02h.
func Age(d time.Duration) string {
	s := int64(d.Round(time.Second) / time.Second)
	switch {
	case s < 0:
		return "0s"
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 600:
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	case s < 3600:
		return fmt.Sprintf("%dm", s/60)
	case s < 86400:
		return fmt.Sprintf("%dh%02dm", s/3600, s%3600/60)
	}
	return fmt.Sprintf("%dd%02dh", s/86400, s%86400/3600)
}

// GiB formats an amount of memory in GiB without the unit, for columns.
func GiB(bytes int64) string { return fmt.Sprintf("%.1f", units.Bytes(bytes).GiB()) }
