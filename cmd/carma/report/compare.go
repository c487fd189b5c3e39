package report

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"carma/mapper/sim"
)

var medium = size{width: 420, height: 230, left: 34}

const (
	mediumTicks = 7
	// shownDots is for how many tasks there are dots with tooltips.
	shownDots = 200
	// curvePoints is how many points a curve over tasks has at most.
	curvePoints = 600
)

// compared are the pictures that have all policies in one.
func compared(runs []Run) ([]figure, error) {
	jct, err := distribution("JCT: share of tasks that were done within (%)", runs, func(l sim.Lifetimes) time.Duration { return l.JCT })
	if err != nil {
		return nil, err
	}
	waiting, err := distribution("Waiting: share of tasks that waited at most (%)", runs, func(l sim.Lifetimes) time.Duration { return l.Waiting })
	if err != nil {
		return nil, err
	}
	slow, err := slowdowns(runs)
	return []figure{jct, waiting, slow}, err
}

// distribution is the cumulative one of a time of the tasks, for each policy.
func distribution(caption string, runs []Run, of func(sim.Lifetimes) time.Duration) (figure, error) {
	sorted := make([][]float64, len(runs))
	longest := time.Second
	for i := range runs {
		for j := range runs[i].Tasks {
			d := of(runs[i].Tasks[j].Record.Lifetimes())
			sorted[i] = append(sorted[i], d.Seconds())
			longest = max(longest, d)
		}
		slices.Sort(sorted[i])
	}
	end, marks := upTo(100, 4, true)
	p := newPlot(newTimeAxis(longest, mediumTicks), end, marks)
	for i, values := range sorted {
		p.Add(series{points: cumulative(values), line: policyLine(runs, i)})
	}
	svg, err := render(p, medium, caption, nil)
	return figure{Caption: caption, SVG: svg}, err
}

// policyLine is thinner the later it is drawn, so that of lines on top of each
// other more than the last is seen.
func policyLine(runs []Run, n int) draw.LineStyle {
	return draw.LineStyle{Color: palette(runs)[n].line, Width: 1.2 + vg.Length(min(len(runs)-1-n, 4))*0.7}
}

// alike names the policies under which every task had the times that it had
// under an earlier one: their lines hide each other.
func alike(runs []Run) string {
	var notes []string
	for i := range runs {
		for j := range i {
			if slices.EqualFunc(runs[i].Tasks, runs[j].Tasks, func(a, b Task) bool { return a.Record.Lifetimes() == b.Record.Lifetimes() }) {
				notes = append(notes, fmt.Sprintf("%s as under %s", clean(runs[i].Policy), clean(runs[j].Policy)))
				break
			}
		}
	}
	if len(notes) == 0 {
		return ""
	}
	return "Every task has the same times under " + strings.Join(notes, ", and under ") + "."
}

// cumulative is the share of values, in per cent, up to each of them.
func cumulative(sorted []float64) points {
	if len(sorted) == 0 {
		return nil
	}
	out := points{{X: sorted[0], Y: 0}}
	for i := range sorted {
		if n := len(sorted); n > curvePoints && i != n-1 && i*curvePoints/n == (i+1)*curvePoints/n {
			continue
		}
		last := out[len(out)-1]
		out = append(out, plotter.XY{X: sorted[i], Y: last.Y}, plotter.XY{X: sorted[i], Y: 100 * float64(i+1) / float64(len(sorted))})
	}
	return out
}

// slowed is a task and its slowdown.
type slowed struct {
	task     *Task
	slowdown float64
}

// slowdowns shows the slowdown of each task, the least slowed first under each
// policy.
func slowdowns(runs []Run) (figure, error) {
	all, most, tasks := make([][]slowed, len(runs)), 1.0, 0
	for i := range runs {
		all[i] = bySlowdown(runs[i].Tasks)
		tasks = max(tasks, len(all[i]))
		if n := len(all[i]); n > 0 {
			most = max(most, all[i][n-1].slowdown)
		}
	}
	end, marks := upTo(most, 5, false)
	x := timeAxis{end: float64(max(1, tasks-1))}
	for _, share := range []float64{0, 25, 50, 75, 100} {
		x.ticks = append(x.ticks, plot.Tick{Value: x.end * share / 100, Label: fmt.Sprintf("%g %%", share)})
	}
	p := newPlot(x, end, marks)
	var dots strings.Builder
	for i, list := range all {
		line := &slowdownLine{list, x.end, policyLine(runs, i), palette(runs)[i].class, clean(runs[i].Policy), &dots}
		p.Add(line)
	}
	const caption = "Slowdown of each task, sorted (× the time alone)"
	svg, err := render(p, medium, caption, dots.String)
	return figure{Caption: caption, SVG: svg}, err
}

func bySlowdown(tasks []Task) []slowed {
	var list []slowed
	for i := range tasks {
		if s := tasks[i].Record.Slowdown(); s > 0 {
			list = append(list, slowed{&tasks[i], s})
		}
	}
	slices.SortFunc(list, func(a, b slowed) int {
		return cmp.Or(cmp.Compare(a.slowdown, b.slowdown), cmp.Compare(a.task.ID, b.task.ID))
	})
	return list
}

// slowdownLine is a policy's, with a dot for each task where there are few.
type slowdownLine struct {
	list   []slowed
	end    float64 // of the x axis
	style  draw.LineStyle
	class  string
	policy string
	dots   *strings.Builder
}

// Plot draws it, as a plot.Plotter does.
func (s *slowdownLine) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	var xy points
	for i, t := range s.list {
		n := len(s.list)
		at := plotter.XY{X: s.end * float64(i) / float64(max(1, n-1)), Y: t.slowdown}
		if n > curvePoints && i != n-1 && i*curvePoints/n == (i+1)*curvePoints/n {
			continue
		}
		xy = append(xy, at)
		if n <= shownDots {
			title := fmt.Sprintf("%s, task %d: %s · × %.2f", s.policy, t.task.ID, t.task.Name, t.slowdown)
			s.dot(x(at.X), y(at.Y), title)
		}
	}
	series{points: xy, line: s.style}.Plot(c, p)
}

func (s *slowdownLine) dot(x, y vg.Length, title string) {
	fmt.Fprintf(s.dots, `<circle class="%s" cx="%.1f" cy="%.1f" r="2.2"><title>%s</title></circle>`,
		s.class, float64(x), float64(y), template.HTMLEscapeString(clean(title)))
}
