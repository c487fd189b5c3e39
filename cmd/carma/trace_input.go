package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"carma/configs/traces"
	"carma/configs/traces/arrivals"
	"carma/configs/traces/helios"
	"carma/configs/traces/joblog"
	"carma/configs/traces/original"
	"carma/configs/traces/philly"
)

// load is a log, arrivals or a trace, as far as the arrivals go.
type load struct {
	name, format string
	// entries is how many there are in the file, those without GPUs and the
	// broken ones included.
	entries int
	list    arrivals.List // those on GPUs
	noGPUs  int
	broken  faults
	trace   *traces.Trace // nil: no trace
}

// shownFaults is how many broken entries are told.
const shownFaults = 3

// faults are the broken entries of a file.
type faults struct {
	count int
	first []string
}

func (f *faults) add(line int, what string) {
	if f.count++; len(f.first) < shownFaults {
		f.first = append(f.first, fmt.Sprintf("line %d: %s", line, printable(what)))
	}
}

func (f *faults) String() string {
	s := strings.Join(f.first, "; ")
	if more := f.count - len(f.first); more > 0 {
		s += fmt.Sprintf("; and %d more", more)
	}
	return s
}

// readLoad reads any file that has arrivals, or a trace that ships with carma.
// Broken entries are refused, or left out and told of.
func (a *app) readLoad(path string, skipBroken bool) (*load, error) {
	f, err := a.open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return traceLoad(traces.Read(path))
	} else if err != nil {
		return nil, usagef("", "%v", err)
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 256<<10)
	l := &load{name: filepath.Base(path)}
	if path == "-" {
		l.name = "stdin"
	}
	head, _ := in.Peek(64 << 10) // of a shorter file all
	switch l.format = formatOf(path, head); l.format {
	case formatTrace:
		return traceLoad(traces.Parse(traceName(path, head), in))
	case formatScript:
		return traceLoad(original.ReadScript(path, in, original.Options{}))
	case "":
		return nil, usagef("it takes a Philly log (JSON), a Helios log (CSV with gpu_num), arrivals (CSV with run_s) or a trace", "%s: not a form that carma knows", l.name)
	}
	if err := l.read(in); err != nil {
		return nil, usagef("", "%s:%v", l.name, err)
	}
	switch {
	case l.broken.count > 0 && !skipBroken:
		return nil, usagef("mend them, or leave them out with --skip-broken", "%s: %d of %d entries are broken: %s", l.name, l.broken.count, l.entries, &l.broken)
	case l.broken.count > 0:
		a.say("%s: left out %d of %d entries that are broken: %s", l.name, l.broken.count, l.entries, &l.broken)
	}
	if len(l.list.Arrivals) == 0 {
		return nil, usagef("", "%s: no task on a GPU among %d entries", l.name, l.entries)
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
func (l *load) read(in io.Reader) (err error) {
	broken := func(line int, what string) { l.broken.add(line, what) }
	if l.format == formatArrivals {
		l.list, err = arrivals.Read(in, broken)
		l.entries = len(l.list.Arrivals) + l.broken.count
		return err
	}
	read := philly.Read
	if l.format == formatHelios {
		read = helios.Read
	}
	err = read(in, joblog.Sink{Job: l.add, Broken: broken})
	l.entries += l.broken.count
	l.list.Sort()
	return err
}

// add takes a job. Arrivals are since the first of the file until they are
// sorted.
func (l *load) add(j joblog.Job) {
	l.entries++
	if j.GPUs == 0 {
		l.noGPUs++
		return
	}
	if l.list.First.IsZero() {
		l.list.First = j.Submitted
	}
	l.list.Arrivals = append(l.list.Arrivals, arrivals.Arrival{
		At: j.Submitted.Sub(l.list.First), GPUs: j.GPUs, RunTime: j.RunTime, State: j.State, Job: j.ID, User: j.User,
	})
}

// traceLoad is that of a trace.
func traceLoad(t traces.Trace, err error) (*load, error) {
	if err != nil {
		return nil, usagef("", "%v", err)
	}
	l := &load{name: t.Name, format: formatTrace, entries: len(t.Tasks), trace: &t}
	if l.list, err = t.Arrivals(); err != nil {
		return nil, err
	}
	l.list.Sort()
	return l, nil
}
