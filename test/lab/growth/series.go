package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// series are the runs at one load.
type series struct {
	name   string // name of the sub-benchmark
	points []point
}

// point is a number of tasks and its runs.
type point struct {
	tasks int
	runs  []run
}

// run is one replay.
type run struct {
	event   float64 // nanoseconds of processor time per event
	whole   float64 // wall-clock seconds of the whole replay
	perTask float64 // number of events
	peak    float64 // MiB resident
}

var sizes = []int{1_000, 10_000, 100_000, 1_000_000}

func newSeries() []*series {
	var all []*series
	for _, name := range []string{"steady", "backlog"} {
		s := &series{name: name}
		for _, n := range sizes {
			s.points = append(s.points, point{tasks: n})
		}
		all = append(all, s)
	}
	return all
}

// add reads a line of go test's output: name, iterations, then values with their
// units.
func (p *point) add(line string) error {
	values := map[string]float64{}
	fields := strings.Fields(line)
	for i := 2; i+1 < len(fields); i += 2 {
		v, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			return fmt.Errorf("not a result: %s", line)
		}
		values[fields[i+1]] = v
	}
	r := run{values["cpu-ns/event"], values["ns/op"] / 1e9, values["events/task"], values["peak-MiB"]}
	if !(min(r.event, r.whole, r.perTask, r.peak) > 0) {
		return fmt.Errorf("a result without all of its values: %s", line)
	}
	p.runs = append(p.runs, r)
	return nil
}

// spread returns the least, the median and the most of a value over the runs.
func (p *point) spread(of func(run) float64) (least, median, most float64) {
	sorted := slices.Clone(p.runs)
	slices.SortFunc(sorted, func(a, b run) int { return cmp.Compare(of(a), of(b)) })
	n := len(sorted)
	return of(sorted[0]), (of(sorted[(n-1)/2]) + of(sorted[n/2])) / 2, of(sorted[n-1])
}

func event(r run) float64 { return r.event }
func whole(r run) float64 { return r.whole }
func peak(r run) float64  { return r.peak }

// table is the results in Markdown: medians, with the spread of the main figures.
func table(all []*series) string {
	var b strings.Builder
	b.WriteString("| load | tasks | events per task | CPU time per event: least, median, most | to that of 1,000 | whole replay: least, median, most | peak memory |\n")
	b.WriteString("|---|---|---|---|---|---|---|\n")
	for _, s := range all {
		_, first, _ := s.points[0].spread(event)
		for i := range s.points {
			p := &s.points[i]
			least, median, most := p.spread(event)
			short, middle, long := p.spread(whole)
			_, _, memory := p.spread(peak)
			fmt.Fprintf(&b, "| %s | %s | %.1f | %.0f, %.0f, %.0f ns | %.2f | %.3g, %.3g, %.3g s | %.0f MiB |\n",
				s.name, thousands(p.tasks), p.runs[0].perTask, least, median, most, median/first, short, middle, long, memory)
		}
	}
	return b.String()
}

// thousands writes 1000000 as 1,000,000.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
