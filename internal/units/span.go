package units

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// endless contains words for an unlimited time; the first three are Slurm's.
var endless = map[string]bool{"unlimited": true, "infinite": true, "infinity": true, "none": true, "never": true}

// ParseSpan parses a time above zero; see [ParseTime].
func ParseSpan(s string) (time.Duration, error) {
	d, err := ParseTime(s)
	if err == nil && d == 0 || endless[strings.ToLower(strings.TrimSpace(s))] {
		return 0, fmt.Errorf("%q is not a time; leave it out for none, or write for example 30s, 90m, 2h or 1d", s)
	}
	return d, err
}

// ParseTime parses a duration of at least zero, in users' notations:
//
//	90, 90s, 1.5h, 2h30m   a number alone is seconds, as for docker and sleep
//	2d, 1d12h, 1w          days of 24 hours, weeks of 7 days
//	2:00:00, 5:30          hours:minutes:seconds, minutes:seconds, as Slurm
//	1-12, 1-12:00:00       days-hours, days-hours:minutes:seconds, as Slurm
func ParseTime(s string) (time.Duration, error) {
	t := strings.TrimSpace(s)
	if strings.HasPrefix(t, "-") {
		return 0, fmt.Errorf("%s is negative; write for example 30s, 90m or 2h", t)
	}
	var seconds float64
	var ok bool
	days, rest, dash := strings.Cut(t, "-")
	switch {
	case dash:
		seconds, ok = clock(rest, []float64{3600, 60, 1})
		var d float64
		d, whole := digits(days)
		seconds, ok = seconds+d*secondsOfDay, ok && whole
	case strings.Contains(t, ":"):
		steps := []float64{3600, 60, 1}
		seconds, ok = clock(t, steps[max(0, 2-strings.Count(t, ":")):])
	default:
		return inUnits(s, t)
	}
	if !ok || seconds >= math.MaxInt64/float64(time.Second) {
		return 0, notATime(s)
	}
	return time.Duration(math.Round(seconds * float64(time.Second))), nil
}

const secondsOfDay = 24 * 60 * 60

// clock parses numbers separated by colons. The i-th number counts steps[i] seconds; all
// except the first must be below 60.
func clock(s string, steps []float64) (seconds float64, ok bool) {
	parts := strings.Split(s, ":")
	if len(parts) > len(steps) {
		return 0, false
	}
	for i, part := range parts {
		n, whole := digits(part)
		if !whole || i > 0 && n >= 60 {
			return 0, false
		}
		seconds += n * steps[i]
	}
	return seconds, true
}

func digits(s string) (float64, bool) {
	n, err := strconv.ParseUint(s, 10, 31)
	return float64(n), err == nil
}

// inUnits parses numbers with units, or a single number. s is the original text.
func inUnits(s, t string) (time.Duration, error) {
	if n, err := strconv.ParseFloat(t, 64); err == nil && strings.Trim(t, "0123456789.") == "" {
		return rounded(s, n*float64(time.Second))
	}
	var long float64 // days and weeks, which package time does not support
	for _, unit := range []struct {
		letter string
		of     time.Duration
	}{{"w", 7 * secondsOfDay * time.Second}, {"d", secondsOfDay * time.Second}} {
		if number, rest, is := strings.Cut(t, unit.letter); is {
			n, err := strconv.ParseFloat(number, 64)
			if err != nil || strings.Trim(number, "0123456789.") != "" {
				return 0, notATime(s)
			}
			long, t = long+n*float64(unit.of), rest
		}
	}
	if t == "" && long == 0 {
		return 0, notATime(s)
	}
	if t == "" {
		return rounded(s, long)
	}
	d, err := time.ParseDuration(t)
	if err != nil || d < 0 {
		return 0, notATime(s)
	}
	if long == 0 {
		return d, nil
	}
	return rounded(s, long+float64(d))
}

func rounded(s string, nanoseconds float64) (time.Duration, error) {
	if nanoseconds >= math.MaxInt64 {
		return 0, notATime(s)
	}
	return time.Duration(math.Round(nanoseconds)), nil
}

func notATime(s string) error {
	return fmt.Errorf("%q is not a time; write for example 30s, 90m, 2h, 1d or 2:00:00", s)
}
