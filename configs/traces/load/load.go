// Package load reads the arrivals of tasks from any file that contains some: the public
// logs of Philly and Helios, tables of Sia's simulator, lists of arrivals, traces, and
// the prototype's scripts. It recognizes the format by the file's extension and
// beginning. A file may be compressed with gzip.
package load

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
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
	"carma/configs/traces/sia"
)

// Load contains the arrivals of a log, a list of arrivals or a trace.
type Load struct {
	Name, Format string
	// Entries is the number of entries in the file, including entries without GPUs and
	// broken entries.
	Entries int
	List    arrivals.List // the entries on GPUs
	NoGPUs  int
	Broken  Faults
}

// shownFaults is the largest number of broken entries in a message.
const shownFaults = 3

// Faults lists the broken entries of a file.
type Faults struct {
	Count int
	first []string
}

func (f *Faults) add(line int, what string) {
	if f.Count++; len(f.first) < shownFaults {
		f.first = append(f.first, fmt.Sprintf("line %d: %s", line, what))
	}
}

// String describes the first faults.
func (f *Faults) String() string {
	s := strings.Join(f.first, "; ")
	if more := f.Count - len(f.first); more > 0 {
		s += fmt.Sprintf("; and %d more", more)
	}
	return s
}

// Shipped returns the arrivals of a trace that ships with carma.
func Shipped(name string) (*Load, error) { return ofTrace(traces.Read(name)) }

// Read reads any file with arrivals. path is the file's name, or - for standard input.
// With skipBroken, broken entries are left out; otherwise they are an error.
func Read(path string, from io.Reader, skipBroken bool) (*Load, error) {
	in := bufio.NewReaderSize(from, 256<<10)
	l := &Load{Name: filepath.Base(path)}
	if path == "-" {
		l.Name = "stdin"
	}
	if magic, _ := in.Peek(2); string(magic) == "\x1f\x8b" {
		unpacked, err := gzip.NewReader(in)
		if err != nil {
			return nil, fmt.Errorf("%s: not gzip: %w", l.Name, err)
		}
		in, path = bufio.NewReaderSize(unpacked, 256<<10), strings.TrimSuffix(path, ".gz")
	}
	head, err := in.Peek(64 << 10) // the whole file if it is shorter
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: cannot be read: %w", l.Name, err)
	}
	switch l.Format = formatOf(path, head); l.Format {
	case formatTrace:
		return ofTrace(traces.Parse(traceName(path, head), in))
	case formatScript:
		return ofTrace(original.ReadScript(path, in, original.Options{}))
	case "":
		return nil, fmt.Errorf("%s: not a form that carma knows; it takes a Philly log (JSON), a Helios log (CSV with gpu_num), a Sia table (CSV with num_gpus), arrivals (CSV with run_s) or a trace", l.Name)
	}
	switch err := l.read(in); {
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, gzip.ErrChecksum) || errors.Is(err, gzip.ErrHeader):
		return nil, fmt.Errorf("%s: cannot be read to its end: %w", l.Name, err)
	case err != nil:
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

// traceName returns the name for errors. Its extension shows the trace's form.
func traceName(path string, head []byte) string {
	switch {
	case path != "-":
		return path
	case bytes.HasPrefix(bytes.TrimSpace(head), []byte("schema:")):
		return "stdin.yaml"
	}
	return "stdin.csv"
}

// The formats, as named in messages.
const (
	formatPhilly   = "Philly log"
	formatHelios   = "Helios log"
	formatSia      = "Sia table"
	formatArrivals = "arrivals"
	formatTrace    = "trace"
	formatScript   = "script"
)

// formatOf recognizes a file's format by its extension and beginning.
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
		case strings.Contains(columns, ",num_gpus,") && strings.Contains(columns, ",timestamp,"):
			return formatSia
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
	switch l.Format {
	case formatHelios:
		read = helios.Read
	case formatSia:
		read = sia.Read
	}
	err = read(in, joblog.Sink{Job: l.add, Broken: broken})
	l.Entries += l.Broken.Count
	l.List.Sort()
	return err
}

// add adds a job. Until the list is sorted, arrival times count from the first job of the
// file.
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

// ofTrace returns the arrivals of a trace.
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
