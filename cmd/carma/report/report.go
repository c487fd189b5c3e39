// Package report writes how replays went as one HTML file: a table, and
// pictures over time and over tasks. The file needs nothing else, no network
// and no script, and equal data give equal bytes. The package runs nothing and
// opens nothing; it is handed plain data.
package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"
	"unicode"

	"carma/mapper/units"

	"carma/mapper"
	"carma/mapper/sim"
)

// Data is one trace under one or more policies.
type Data struct {
	Trace, Description string
	Server             string
	GPUs               []GPU
	// Facts are further conditions of the replay, for people: "estimator oracle".
	Facts []string
	// Runs are in the order in which they are shown.
	Runs []Run
	// Reference is what ratios are to. It may be one of Runs. If it is nil, that
	// of policy exclusive is it, or the first.
	Reference *Run
}

// GPU is one device of the server.
type GPU struct {
	Index  int
	Model  string
	Memory units.Bytes
}

// Run is the trace under one policy.
type Run struct {
	Policy  string
	Metrics sim.Metrics
	// Timeline may be nil; then there are no pictures over time.
	Timeline *sim.Timeline
	Tasks    []Task
	// Users are shown where there is more than one.
	Users []User
}

// User is what the tasks of one user came to.
type User struct {
	Name    string // empty: tasks without one
	Tasks   int
	GPUTime time.Duration
	EnergyJ float64
}

// Task is one task of a run.
type Task struct {
	ID   mapper.TaskID
	Name string
	// Kind is what tasks of one colour have in common.
	Kind   string
	Phase  mapper.Phase
	Reason string // why it failed
	Record sim.Record
	// EnergyJ is its share of the GPUs' energy, in joules; 0: not known.
	EnergyJ float64
}

//go:embed page.html
var source string

//go:embed style.css
var style string

var page = template.Must(template.New("page").Parse(source))

// Write writes the report of one or more traces.
func Write(w io.Writer, all []Data) error {
	p := struct {
		Title    string
		Style    template.CSS
		Sections []section
	}{Title: "carma replay", Style: template.CSS(style)}
	names := make([]string, len(all))
	for i := range all {
		s, err := newSection(&all[i], i+1)
		if err != nil {
			return fmt.Errorf("report on %s: %w", all[i].Trace, err)
		}
		names[i] = s.Trace
		p.Sections = append(p.Sections, s)
	}
	if len(names) > 0 {
		p.Title += ": " + strings.Join(names, ", ")
	}
	return page.Execute(w, p)
}

// clean replaces what has no place in a line of text. What would be markup is
// escaped where text is written.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r >= 0xfffe && r <= 0xffff {
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(s, string(unicode.ReplacementChar)))
}
