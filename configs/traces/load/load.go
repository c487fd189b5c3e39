// Package load reads the arrivals of tasks from any file that has some: the
// public logs of Philly and Helios, lists of arrivals, traces and the prototype's
// scripts. What a file is shows by its ending and how it begins.
package load

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"carma/configs/traces"
	"carma/configs/traces/arrivals"
	"carma/configs/traces/helios"
	"carma/configs/traces/joblog"
	"carma/configs/traces/original"
	"carma/configs/traces/philly"
)

// Load is a log, arrivals or a trace, as far as the arrivals go.
type Load struct {
	Name, Format string
	// Entries is how many there are in the file, those without GPUs and the
	// broken ones included.
	Entries int
	List    arrivals.List // those on GPUs
	NoGPUs  int
	Broken  Faults
}

// shownFaults is how many broken entries are told.
const shownFaults = 3

// Faults are the broken entries of a file.
type Faults struct {
	Count int
	first []string
}

func (f *Faults) add(line int, what string) {
	if f.Count++; len(f.first) < shownFaults {
		f.first = append(f.first, fmt.Sprintf("line %d: %s", line, what))
	}
}

// String has the first of them.
func (f *Faults) String() string {
	s := strings.Join(f.first, "; ")
	if more := f.Count - len(f.first); more > 0 {
		s += fmt.Sprintf("; and %d more", more)
	}
	return s
}

// Shipped reads a trace that ships with carma.
func Shipped(name string) (*Load, error) { return ofTrace(traces.Read(name)) }

// Read reads any file that has arrivals; path is its name, and - is standard
// input. Broken entries are an error, or left out if they may be.
func Read(path string, from io.Reader, skipBroken bool) (*Load, error) {
	in := bufio.NewReaderSize(from, 256<<10)
	l := &Load{Name: filepath.Base(path)}
	if path == "-" {
		l.Name = "stdin"
	}
	head, _ := in.Peek(64 << 10) // of a shorter file all
	switch l.Format = formatOf(path, head); l.Format {
	case formatTrace:
		return ofTrace(traces.Parse(traceName(path, head), in))
	case formatScript:
		return ofTrace(original.ReadScript(path, in, original.Options{}))
	case "":
		return nil, fmt.Errorf("%s: not a form that carma knows; it takes a Philly log (JSON), a Helios log (CSV with gpu_num), arrivals (CSV with run_s) or a trace", l.Name)
	}
	if err := l.read(in); err != nil {
		return nil, fmt.Errorf("%s:%w", l.Name, err)
	}
	if l.Broken.Count > 0 && !skipBroken {
		return nil, fmt.Errorf("%s: %d of %d entries are broken: %s; mend them, or leave them out with --skip-broken", l.Name, l.Broken.Count, l.Entries, &l.Broken)
	}
	if len(l.List.Arrivals) == 0 {
		return nil, fmt.Errorf("%s: no task on a GPU among %d entries", l.Name, l.Entries)
	}
	return l, nil
}

// traceName is what stands before errors; its ending is that of the form.
func traceName(path string, head []byte) string {
	switch {
	case path != "-":
		return path
	case bytes.HasPrefix(bytes.TrimSpace(head), []byte("schema:")):
		return "stdin.yaml"
	}
	return "stdin.csv"
}

// Formats by their names for people.
const (
	formatPhilly   = "Philly log"
	formatHelios   = "Helios log"
	formatArrivals = "arrivals"
	formatTrace    = "trace"
	formatScript   = "script"
)

// formatOf tells a file's format by how it begins.
func formatOf(path string, head []byte) string {
	text := bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\ufeff")), " \t\r\n")
	switch strings.ToLower(filepath.Ext(path)) {
	case ".yaml", ".yml":
		return formatTrace
	case ".sh":
		return formatScript
	}
	if bytes.HasPrefix(text, []byte("[")) || bytes.HasPrefix(text, []byte("{")) {
		return formatPhilly
	}
	for line := range strings.Lines(string(text)) {
		line = strings.ToLower(strings.TrimSpace(line))
		columns := "," + strings.NewReplacer(" ", "", `"`, "").Replace(line) + ","
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
			continue
		case strings.Contains(columns, ",gpu_num,"):
			return formatHelios
		case strings.Contains(columns, ",run_s,"):
			return formatArrivals
		case strings.Contains(columns, ",workload,"), strings.Contains(columns, ",task,"), strings.HasPrefix(line, "schema:"):
			return formatTrace
		}
		return ""
	}
	return ""
}

// read reads a log or arrivals.
func (l *Load) read(in io.Reader) (err error) {
	broken := func(line int, what string) { l.Broken.add(line, what) }
	if l.Format == formatArrivals {
		l.List, err = arrivals.Read(in, broken)
		l.Entries = len(l.List.Arrivals) + l.Broken.Count
		return err
	}
	read := philly.Read
	if l.Format == formatHelios {
		read = helios.Read
	}
	err = read(in, joblog.Sink{Job: l.add, Broken: broken})
	l.Entries += l.Broken.Count
	l.List.Sort()
	return err
}

// add takes a job. Arrivals are since the first of the file until they are
// sorted.
func (l *Load) add(j joblog.Job) {
	l.Entries++
	if j.GPUs == 0 {
		l.NoGPUs++
		return
	}
	if l.List.First.IsZero() {
		l.List.First = j.Submitted
	}
	l.List.Arrivals = append(l.List.Arrivals, arrivals.Arrival{
		At: j.Submitted.Sub(l.List.First), GPUs: j.GPUs, RunTime: j.RunTime, State: j.State, Job: j.ID, User: j.User,
	})
}

// ofTrace are the arrivals of a trace.
func ofTrace(t traces.Trace, err error) (*Load, error) {
	if err != nil {
		return nil, err
	}
	l := &Load{Name: t.Name, Format: formatTrace, Entries: len(t.Tasks)}
	if l.List, err = t.Arrivals(); err != nil {
		return nil, err
	}
	l.List.Sort()
	return l, nil
}
