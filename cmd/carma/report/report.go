// Package report writes the results of replays as one HTML file: a summary in words, a
// table, charts over time and over tasks, and the tasks. The file is self-contained, and
// equal data give equal bytes. The package also writes a picture of the tasks on GPUs, a
// Chrome trace, and a page about a load. It runs nothing and opens nothing; it gets plain
// data.
package report

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"strings"
	"time"
	"unicode"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/mapper/sim"
	"carma/runner/web/look"
)

// Data is one trace under one or more policies.
type Data struct {
	Trace, Description string
	Server             string
	GPUs               []GPU
	// Facts lists other conditions of the replay as texts, such as "estimator oracle".
	Facts []string
	// Runs are in display order. All have the same tasks, in the same order.
	Runs []Run
	// Reference is the run to which ratios are relative. It may be one of Runs. The
	// default is the run of policy exclusive, or the first.
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
	// Timeline may be nil; then there are no charts over time.
	Timeline *sim.Timeline
	Tasks    []Task
	// Users are shown if there are several.
	Users []User
}

// User sums the tasks of one user.
type User struct {
	Name    string // empty for tasks without one
	Tasks   int
	GPUTime time.Duration
	EnergyJ float64
}

// Task is one task of a run.
type Task struct {
	ID   model.TaskID
	Name string
	// Kind is the name of the tasks that share a colour.
	Kind   string
	Phase  model.Phase
	Reason string // reason of the failure
	Record sim.Record
	// EnergyJ is the task's share of the GPUs' energy, in joules, or 0 if unknown.
	EnergyJ float64
}

//go:embed page
var pageFiles embed.FS

// frame contains the parts of all pages: styles, and scripts with their hashes for the
// content security policy, which allows no other script.
type frame struct {
	Title                 string
	Style                 template.CSS
	Theme, Charts, Script template.JS
	Hashes                []string
}

// newFrame returns the frame of a page whose script is made of main and its imports.
func newFrame(title, main string) frame {
	files, err := fs.Sub(pageFiles, "page")
	if err != nil {
		panic(err) // the files are embedded
	}
	script, err := look.Script(files, main)
	if err != nil {
		panic(err) // a test bundles them
	}
	own, err := fs.ReadFile(files, "report.css")
	if err != nil {
		panic(err) // the files are embedded
	}
	f := frame{
		Title: title,
		Style: template.CSS(look.Text("others/uPlot.min.css") + look.Text("base.css") + colourSheet() + string(own)),
		Theme: template.JS(look.Text("theme.js")), Charts: template.JS(look.Text("others/uPlot.iife.min.js")), Script: template.JS(script),
	}
	for _, one := range []template.JS{f.Theme, f.Charts, f.Script} {
		sum := sha256.Sum256([]byte(one))
		f.Hashes = append(f.Hashes, base64.StdEncoding.EncodeToString(sum[:]))
	}
	return f
}

// execute writes a page.
func execute(w io.Writer, page string, data any) error {
	return template.Must(template.ParseFS(pageFiles, "page/*.html")).ExecuteTemplate(w, page, data)
}

// Write writes the report of one or more traces.
func Write(w io.Writer, all []Data) error {
	p := struct {
		frame
		Sections []section
	}{frame: newFrame("carma replay", "main.js")}
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
	return execute(w, "page.html", p)
}

// clean replaces characters that are not allowed in a line of text. Markup is escaped
// when text is written.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r >= 0xfffe && r <= 0xffff {
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(s, string(unicode.ReplacementChar)))
}
