package pick

import (
	"strings"
	"time"

	"carma/cmd/carma/cli"
	"carma/internal/units"
)

// Moment parses a point in time: a time ago (90m, 2d), a time of day (09:30, today), a
// date, alone or with a time of day, or a word of Slurm's (now-2h). now is the daemon's
// time.
func Moment(text string, now time.Time) (time.Time, error) {
	now = now.Local()
	if t, is := slurms(text, now); is {
		return t, nil
	}
	if t, err := time.ParseInLocation("15:04", text, time.Local); err == nil {
		return time.Date(now.Year(), now.Month(), now.Day(), t.Hour(), t.Minute(), 0, 0, time.Local), nil
	}
	for _, form := range []string{"2006-01-02", "2006-01-02 15:04", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02T15:04:05", time.RFC3339} {
		if t, err := time.ParseInLocation(form, text, time.Local); err == nil {
			return t, nil
		}
	}
	midnight := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.Local)
	switch text {
	case "today":
		return midnight, nil
	case "yesterday":
		return midnight.AddDate(0, 0, -1), nil
	}
	bare := text != "" && strings.Trim(text, "0123456789.") == ""
	if ago, err := units.ParseTime(text); err == nil && !bare && !strings.Contains(text, ":") {
		return now.Add(-ago), nil
	}
	return time.Time{}, cli.Usagef("write for example 2h (ago), 09:30, yesterday, 2026-01-02 or \"2026-01-02 09:30\"", "%q is no point in time", text)
}

// Ahead parses a future point in time: a time from then (2h, 2d), a time of day (the
// first after then), or a date, alone or with a time of day.
func Ahead(flag, text string, then time.Time) (time.Time, error) {
	then = then.Local()
	if t, is := slurms(text, then); is {
		return t, nil
	}
	bare := text != "" && strings.Trim(text, "0123456789.") == ""
	if span, err := units.ParseTime(text); err == nil && !bare && !strings.Contains(text, ":") && span > 0 {
		return then.Add(span), nil
	}
	if t, err := time.ParseInLocation("15:04", text, time.Local); err == nil {
		at := time.Date(then.Year(), then.Month(), then.Day(), t.Hour(), t.Minute(), 0, 0, time.Local)
		if !at.After(then) {
			at = at.AddDate(0, 0, 1)
		}
		return at, nil
	}
	for _, form := range []string{"2006-01-02", "2006-01-02 15:04", "2006-01-02T15:04", time.RFC3339} {
		if t, err := time.ParseInLocation(form, text, time.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, cli.Usagef("write for example 22:00, 2h (from now), 2026-01-02 or \"2026-01-02 09:30\"", "%s: %q is no point in time", flag, text)
}

// slurms parses Slurm's words: now, now+2h, now-2h, tomorrow.
func slurms(text string, now time.Time) (time.Time, bool) {
	if text == "tomorrow" {
		return time.Date(now.Year(), now.Month(), now.Day()+1, 0, 0, 0, 0, time.Local), true
	}
	span, is := strings.CutPrefix(text, "now")
	if !is || span == "" {
		return now, is
	}
	length, err := units.ParseTime(span[1:])
	switch {
	case err != nil:
		return now, false
	case span[0] == '+':
		return now.Add(length), true
	case span[0] == '-':
		return now.Add(-length), true
	}
	return now, false
}
