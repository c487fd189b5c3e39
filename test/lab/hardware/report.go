package main

import (
	_ "embed"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
)

// report is everything that was measured.
type report struct {
	Date, GPU, Engine, Tried string
	Dry                      bool
	Seconds                  float64
	Facts                    []fact
	Context                  []contextStage
	Trained                  []trained
	Evaluation               string // output of carma estimate --evaluate
	Paired                   []*pairing
	Suite                    []suiteRun
	Faults                   []faultRow
	Suspended                [][]string // rows of suspend.csv; the first is its header
	Aside                    []asideRow
	Omitted                  map[string]string // why a phase was not measured, by phase
	Failures                 []string
}

// omit notes why a phase measured nothing.
func (r *report) omit(phase, why string) {
	if r.Omitted == nil {
		r.Omitted = map[string]string{}
	}
	r.Omitted[phase] = strings.Join(strings.Fields(why), " ")
}

// fail records a phase that failed. Its results until then stay.
func (r *report) fail(phase string, err error) {
	why := strings.Join(strings.Fields(err.Error()), " ")
	r.Failures = append(r.Failures, phase+": "+why)
	r.omit(phase, "failed: "+why)
}

func (r *report) failed() bool { return len(r.Failures) > 0 }

// failure returns the run's error.
func (r *report) failure() error {
	if !r.failed() {
		return nil
	}
	return errors.New(strings.Join(r.Failures, "; "))
}

//go:embed report.md.tmpl
var page string

var pageTemplate = template.Must(template.New("report").Funcs(template.FuncMap{
	"mib": mebi, "fix": figure, "percent": func(x float64) string { return fmt.Sprintf("%+.1f %%", 100*x) },
	"trim": strings.TrimSpace, "speed": func(rate, alone float64) string { return figure(rate/alone, 3) },
}).Parse(page))

// write writes report.md.
func (r *report) write(folder string) error {
	file, err := os.Create(filepath.Join(folder, "report.md"))
	if err != nil {
		return err
	}
	return errors.Join(pageTemplate.Execute(file, r), file.Close())
}

// Overhead returns the memory of a process beyond PyTorch's allocator, in bytes.
func (r *report) Overhead() int64 { return r.overhead() }

// actual returns the memory of a training's process, in bytes: as NVML listed it, or
// PyTorch's peak reserved memory plus the overhead, or 0 if not measured.
func (r *report) actual(row trained) int64 {
	switch {
	case row.Reserved == 0:
		return 0
	case row.Process > row.Reserved:
		return row.Process
	case r.overhead() > 0:
		return row.Reserved + r.overhead()
	}
	return 0
}

// Errors sums up the estimator's errors on the measured rows. The estimates have
// this machine's context in place of their own. Errors are relative to the memory
// of the process. It also counts how many upper bounds held.
func (r *report) Errors() (e estimateErrors) {
	var off []float64
	for _, row := range r.Trained {
		if row.Status == "oom" {
			e.OOMs++
		}
		whole := float64(r.actual(row))
		if whole == 0 || r.overhead() == 0 {
			continue
		}
		corrected := float64(row.Estimate - row.EstimatedContext + r.overhead())
		off = append(off, math.Abs(corrected-whole)/whole)
		e.Bias += (corrected - whole) / whole
		if row.Upper-row.EstimatedContext+r.overhead() >= int64(whole) {
			e.Held++
		}
	}
	if e.Rows = len(off); e.Rows == 0 {
		return e
	}
	slices.Sort(off)
	for _, x := range off {
		e.Mean += x
	}
	n := float64(e.Rows)
	e.Mean, e.Bias, e.Median, e.Worst = e.Mean/n, e.Bias/n, off[e.Rows/2], off[e.Rows-1]
	return e
}

// estimateErrors are relative to the measured memory.
type estimateErrors struct {
	Rows, OOMs, Held          int
	Mean, Median, Worst, Bias float64
}

// suiteRow is a row of the suite's table.
type suiteRow struct {
	suiteRun
	MakespanRatio, EnergyRatio, Mean, Most float64
}

// Modes compares the suite's runs with the first one, which is exclusive.
func (r *report) Modes() (rows []suiteRow) {
	for _, run := range r.Suite {
		row := suiteRow{suiteRun: run, MakespanRatio: run.Makespan / r.Suite[0].Makespan, EnergyRatio: run.EnergyJ / r.Suite[0].EnergyJ}
		row.Mean, row.Most = r.slowdown(run)
		rows = append(rows, row)
	}
	return rows
}
