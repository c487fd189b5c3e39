// Package joblog holds what the readers of cluster logs have in common: a job
// as every log tells of it, times as they are written, and tables of
// comma-separated values read line by line. The formats themselves are in the
// packages philly, helios and arrivals.
//
// A reader calls one function for each job and another for each entry that
// makes no sense. It never stops at a broken entry: who reads decides.
package joblog

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// State is how a job ended.
type State string

// States, whatever a log calls them.
const (
	Done   State = "done"
	Failed State = "failed"
	Killed State = "killed"
	// Other is a state that says nothing of the job: it was suspended.
	Other State = "other"
)

// Unknown is the run time of a job whose start or end a log does not tell.
const Unknown time.Duration = -1

// Job is one job of a log.
type Job struct {
	ID, User  string
	State     State
	Submitted time.Time     // as the log writes it, which names no zone; here UTC
	GPUs      int           // 0: none, or not told
	RunTime   time.Duration // from the first start to the last end; or Unknown
	Line      int           // where it begins in the file, from 1
}

// Sink takes what a reader finds. Both functions are called in the order of
// the file, by one goroutine.
type Sink struct {
	Job    func(Job)
	Broken func(line int, what string)
}

// Limits on foreign input.
const (
	MaxEntry = 1 << 20 // bytes of a line or of a job
	MaxGPUs  = 1 << 16 // of a job
)

// timeLayout is that of both public logs.
const timeLayout = "2006-01-02 15:04:05"

// ParseTime reads a time as the logs write it, for example 2017-10-07 01:11:39.
func ParseTime(s string) (time.Time, error) {
	t, err := time.Parse(timeLayout, s)
	if err != nil || t.Year() < 1970 || t.Year() > 2200 {
		return time.Time{}, fmt.Errorf("%.40q is not a time; write for example 2017-10-07 01:11:39", s)
	}
	return t, nil
}

// FormatTime writes a time as ParseTime reads it.
func FormatTime(t time.Time) string { return t.UTC().Format(timeLayout) }

// MaxTime bounds arrivals and run times: longer ones are mistakes.
const MaxTime = 10 * 365 * 24 * time.Hour

// Between is the run time between two times as the logs write them.
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

// ParseSeconds reads seconds from 0 on, with or without a fraction, exactly.
func ParseSeconds(s string) (time.Duration, error) {
	if s != "" && strings.Trim(s, "0123456789.") == "" {
		if d, err := time.ParseDuration(s + "s"); err == nil && d <= MaxTime {
			return d, nil
		}
	}
	return 0, fmt.Errorf("%.40q is not seconds from 0 to ten years; write for example 90 or 0.5", s)
}

// FormatSeconds writes a time as ParseSeconds reads it.
func FormatSeconds(d time.Duration) string {
	whole, rest := d/time.Second, d%time.Second
	if rest == 0 {
		return strconv.FormatInt(int64(whole), 10)
	}
	return strings.TrimRight(fmt.Sprintf("%d.%09d", whole, rest), "0")
}
