package report

import (
	"fmt"
	"math"
	"time"

	"carma/mapper/units"
)

// Span is a time in two units: 120h, 7h02m, 12m05s, 5s.
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

func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

// energy is one in joules.
func energy(j float64) string { return units.Joules(j).String() }

func gib(b units.Bytes) string { return fmt.Sprintf("%.1f GiB", b.GiB()) }

// ratio is one figure relative to another; nothing where that is not known.
func ratio(r float64) string {
	if r == 0 || math.IsNaN(r) || math.IsInf(r, 0) {
		return ""
	}
	return fmt.Sprintf("× %.2f", r)
}
