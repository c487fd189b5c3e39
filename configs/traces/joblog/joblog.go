// Package joblog contains the common parts of the readers of cluster logs: jobs, times as
// logs write them, and tables of comma-separated values that are read line by line. The
// formats are in the packages philly, helios and arrivals.
//
// A reader calls one function for each job and another function for each broken entry. It
// never stops at a broken entry, because the caller decides whether that is an error.
package joblog

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// State is the way in which a job ended.
type State string

// The states, in carma's words.
const (
	Done   State = "done"
	Failed State = "failed"
	Killed State = "killed"
	// Other is a state that does not show whether the job succeeded, such as suspended.
	Other State = "other"
)

// Unknown is the run time of a job whose start or end is not in the log.
const Unknown time.Duration = -1

// Job is one job of a log.
type Job struct {
	ID, User  string
	State     State
	Submitted time.Time     // as UTC; the logs name no zone
	GPUs      int           // 0 if none, or not in the log
	RunTime   time.Duration // from the first start to the last end, or Unknown
	Line      int           // first line of the job in the file, from 1
}

// Sink receives the jobs and the broken entries. A reader calls both functions in
// the order of the file, from one goroutine.
type Sink struct {
	Job    func(Job)
	Broken func(line int, what string)
}

// Limits on untrusted input.
const (
	MaxEntry = 1 << 20 // bytes of a line or a job
	MaxGPUs  = 1 << 16 // of a job
)

// timeLayout is the layout of times in both public logs.
const timeLayout = "2006-01-02 15:04:05"

// ParseTime reads a time of the logs, for example 2017-10-07 01:11:39.
func ParseTime(s string) (time.Time, error) {
	t, err := time.Parse(timeLayout, s)
	if err != nil || t.Year() < 1970 || t.Year() > 2200 {
		return time.Time{}, fmt.Errorf("%.40q is not a time; write for example 2017-10-07 01:11:39", s)
	}
	return t, nil
}

// FormatTime is the inverse of ParseTime.
func FormatTime(t time.Time) string { return t.UTC().Format(timeLayout) }

// MaxTime bounds arrivals and run times. A longer time is a mistake in the log.
const MaxTime = 10 * 365 * 24 * time.Hour

// Between returns the run time between two times of a log. It fails if one of them is not a
// time, or if end is before start or more than [MaxTime] after start.
func Between(start, end string) (time.Duration, error) {
	from, err := ParseTime(start)
	if err != nil {
		return 0, fmt.Errorf("start_time %w", err)
	}
	to, err := ParseTime(end)
	if err != nil {
		return 0, fmt.Errorf("end_time %w", err)
	}
	if to.Before(from) || to.Sub(from) > MaxTime {
		return 0, fmt.Errorf("end_time %s is before start_time %s, or ten years after", end, start)
	}
	return to.Sub(from), nil
}

// ParseSeconds parses a number of seconds, at least 0, with or without a fraction,
// exactly.
func ParseSeconds(s string) (time.Duration, error) {
	if s != "" && strings.Trim(s, "0123456789.") == "" {
		if d, err := time.ParseDuration(s + "s"); err == nil && d <= MaxTime {
			return d, nil
		}
	}
	return 0, fmt.Errorf("%.40q is not seconds from 0 to ten years; write for example 90 or 0.5", s)
}

// FormatSeconds is the inverse of ParseSeconds.
func FormatSeconds(d time.Duration) string {
	whole, rest := d/time.Second, d%time.Second
	if rest == 0 {
		return strconv.FormatInt(int64(whole), 10)
	}
	return strings.TrimRight(fmt.Sprintf("%d.%09d", whole, rest), "0")
}
