// Package arrivals represents the load of a log: the tasks' arrival times, GPUs and run
// times. It samples a log, compares samples with their source, and reads and writes them.
//
// The file is a table; lines that begin with # are comments:
//
//	arrival_s,gpus,run_s,state,job,user
//	0,1,3723,done,application_1,u1
//
// Times are in seconds. arrival_s counts from the first arrival. run_s is empty if
// unknown. Columns may be in any order; only the first three are required.
package arrivals

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"carma/configs/traces/joblog"
	"carma/internal/suggest"
)

// Arrival is one task of a load.
type Arrival struct {
	At        time.Duration // since the first arrival
	GPUs      int           // at least 1
	RunTime   time.Duration // or joblog.Unknown
	State     joblog.State  // empty if not given
	Job, User string        // may be empty
}

// List is a load, sorted by arrival. Equal times are in the order of their
// source.
type List struct {
	// First is the arrival time of the first task, or zero if unknown.
	First    time.Time
	Arrivals []Arrival
}

// Sort sorts a list and moves its first arrival to 0.
func (l *List) Sort() {
	slices.SortStableFunc(l.Arrivals, func(a, b Arrival) int { return cmp.Compare(a.At, b.At) })
	if len(l.Arrivals) == 0 || l.Arrivals[0].At == 0 {
		return
	}
	first := l.Arrivals[0].At
	if !l.First.IsZero() {
		l.First = l.First.Add(first)
	}
	for i := range l.Arrivals {
		l.Arrivals[i].At -= first
	}
}

// Span returns the time from the first arrival to the last.
func (l List) Span() time.Duration {
	if len(l.Arrivals) == 0 {
		return 0
	}
	return l.Arrivals[len(l.Arrivals)-1].At
}

var columns = []string{"arrival_s", "gpus", "run_s", "state", "job", "user"}

// Write writes a table after a comment line.
func Write(w io.Writer, remark string, l List) error {
	if _, err := fmt.Fprintf(w, "# %s\n", plain(remark)); err != nil {
		return err
	}
	out := csv.NewWriter(w)
	if err := out.Write(columns); err != nil {
		return err
	}
	for _, a := range l.Arrivals {
		run := ""
		if a.RunTime != joblog.Unknown {
			run = joblog.FormatSeconds(a.RunTime)
		}
		if err := out.Write([]string{joblog.FormatSeconds(a.At), strconv.Itoa(a.GPUs), run, string(a.State), plain(a.Job), plain(a.User)}); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// plain removes control characters from untrusted text, so that it stays on one line.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
}

// Read reads a table and calls broken for every invalid line. It fails if reading fails, or
// if the file is not such a table.
func Read(r io.Reader, broken func(line int, what string)) (List, error) {
	t, err := joblog.NewTable(r, columns[:3]...)
	if err != nil {
		return List{}, err
	}
	var l List
	if err := joblog.Rows(t, parse, func(a Arrival) { l.Arrivals = append(l.Arrivals, a) }, broken); err != nil {
		return l, err
	}
	l.Sort()
	return l, nil
}

var states = []string{string(joblog.Done), string(joblog.Failed), string(joblog.Killed), string(joblog.Other)}

func parse(t *joblog.Table) (Arrival, error) {
	a := Arrival{RunTime: joblog.Unknown, State: joblog.State(t.Get("state")), Job: strings.Clone(t.Get("job")), User: strings.Clone(t.Get("user"))}
	if a.State != "" && !slices.Contains(states, string(a.State)) {
		return a, fmt.Errorf("unknown state %.40q; nearest: %s", a.State, suggest.Names(string(a.State), states, 1)[0])
	}
	var err error
	if a.At, err = joblog.ParseSeconds(t.Get("arrival_s")); err != nil {
		return a, fmt.Errorf("arrival_s %w", err)
	}
	if a.GPUs, err = t.GPUs("gpus", 1); err != nil {
		return a, err
	}
	if run := t.Get("run_s"); run != "" {
		if a.RunTime, err = joblog.ParseSeconds(run); err != nil {
			return a, fmt.Errorf("run_s %w", err)
		}
	}
	return a, nil
}
