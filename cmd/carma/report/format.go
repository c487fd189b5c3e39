package report

import (
	"fmt"
	"math"
	"time"

	"carma/internal/units"
)

// Formats of the figures in a replay's table, for the report and the console.

// Span formats a time in two units: 120h, 7h02m, 12m05s, 5s.
func Span(d time.Duration) string {
	s := int64(d.Round(time.Second) / time.Second)
	switch {
	case s >= 100*3600:
		return fmt.Sprintf("%dh", int64(d.Round(time.Hour)/time.Hour))
	case s >= 3600:
		m := int64(d.Round(time.Minute) / time.Minute)
		return fmt.Sprintf("%dh%02dm", m/60, m%60)
	case s >= 60:
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	}
	return fmt.Sprintf("%ds", s)
}

// Percent formats a share of tasks.
func Percent(share float64) string { return fmt.Sprintf("%.1f%%", 100*share) }

// Times formats a slowdown.
func Times(f float64) string { return fmt.Sprintf("%.2fx", f) }

// Fraction formats an activity.
func Fraction(f float64) string { return fmt.Sprintf("%.2f", f) }

// Gigabytes formats memory, in GiB.
func Gigabytes(b units.Bytes) string { return fmt.Sprintf("%.1fG", b.GiB()) }

// Megajoules formats an energy given in joules, without its unit.
func Megajoules(j float64) string {
	if j >= 1e8 {
		return fmt.Sprintf("%.0f", j/1e6)
	}
	return fmt.Sprintf("%.2f", j/1e6)
}

// Ratio formats the ratio of one figure to another, or returns "" if it is unknown.
func Ratio(r float64) string {
	if r == 0 || math.IsNaN(r) || math.IsInf(r, 0) {
		return ""
	}
	return fmt.Sprintf("× %.3f", r)
}

// energy formats an energy given in joules.
func energy(j float64) string { return units.Joules(j).String() }

// quotient returns the ratio of one time to another, or 0 if there is none.
func quotient(a, b time.Duration) float64 {
	if b <= 0 {
		return 0
	}
	return a.Seconds() / b.Seconds()
}
