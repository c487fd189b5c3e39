package report

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"
	"time"

	"carma/mapper/units"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"carma/mapper"
	"carma/mapper/sim"
)

// shownSpans is up to how many attempts a chart shows one by one.
const shownSpans = 2000

// Lanes fit in a height, if that leaves each lane between these.
const lanesHeight, thinLane, thickLane = 620.0, 3.0, 14.0

// whatRan is the chart of what ran where: of each attempt or, where they are
// too many, of how many there were.
func whatRan(r *Run, kinds kindRanks, x timeAxis) (figure, error) {
	f := frame{line: r.Timeline, tasks: map[mapper.TaskID]*Task{}, kinds: kinds}
	for i := range r.Tasks {
		f.tasks[r.Tasks[i].ID] = &r.Tasks[i]
	}
	for _, s := range r.Timeline.Spans {
		if s.GPU < shownBands {
			f.spans = append(f.spans, s)
		}
	}
	name := "attempts on each GPU under " + r.Policy
	if len(f.spans) > shownSpans {
		return newDensity(f).figure(x, name)
	}
	return newGantt(f).figure(x, name)
}

// gantt has a band for each GPU, in it a lane for each task that it runs at
// once, and in that its attempts. It is a plot.Plotter.
type gantt struct {
	frame
	lanes             []int // of each span
	marks, away, ooms strings.Builder
}

func newGantt(f frame) *gantt {
	g := &gantt{frame: f, lanes: lanesOf(f.spans, len(f.line.GPUs))}
	most := make([]float64, min(shownBands, len(f.line.GPUs))) // lanes of each GPU
	for i, s := range g.spans {
		most[s.GPU] = max(most[s.GPU], float64(g.lanes[i]+1))
	}
	lanes := 0.0
	for _, n := range most {
		lanes += max(1, n) + 0.5
	}
	g.lane = math.Max(thinLane, math.Min(thickLane, lanesHeight/lanes))
	for _, n := range most {
		g.addBand(max(1, n)*g.lane, g.lane/2)
	}
	return g
}

// lanesOf gives each span the first lane of its GPU that is free.
func lanesOf(spans []sim.Span, gpus int) (lanes []int) {
	free := make([][]units.Instant, gpus) // by GPU and lane: from when on
	for _, s := range spans {
		lane := slices.IndexFunc(free[s.GPU], func(from units.Instant) bool { return from <= s.Launched })
		if lane < 0 {
			lane = len(free[s.GPU])
			free[s.GPU] = append(free[s.GPU], 0)
		}
		free[s.GPU][lane] = s.Ended
		lanes = append(lanes, lane)
	}
	return lanes
}

func (g *gantt) figure(x timeAxis, name string) (figure, error) {
	// What ran out of memory goes on top: it may be no wider than its mark.
	return g.draw(x, name, g, func() string {
		return `<g class="gantt">` + g.marks.String() + g.away.String() + g.ooms.String() + "</g>"
	})
}

// Plot makes the marks of the spans. The plot library knows no tooltips.
func (g *gantt) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	left := map[attempt]int{} // the span that each suspended attempt left last; look-up only
	for i, s := range g.spans {
		top := g.bands[s.GPU].top + float64(g.lanes[i])*g.lane
		if n, ok := left[attempt{s.Task, s.Attempt}]; ok {
			from := g.spans[n]
			before := g.bands[from.GPU].top + float64(g.lanes[n])*g.lane
			g.leash(from, s, vg.Point{X: x(seconds(g.line, from.Ended)), Y: y(-before - g.lane/2)}, vg.Point{X: x(seconds(g.line, s.Launched)), Y: y(-top - g.lane/2)})
		}
		if delete(left, attempt{s.Task, s.Attempt}); s.Outcome == sim.OutcomeAway {
			left[attempt{s.Task, s.Attempt}] = i
		}
		left, right := x(seconds(g.line, s.Launched)), x(seconds(g.line, s.Ended))
		g.mark(s, vg.Rectangle{Min: vg.Point{X: left, Y: y(-top - g.lane)}, Max: vg.Point{X: right, Y: y(-top)}})
	}
}

// mark is one span as SVG, y upwards.
func (g *gantt) mark(s sim.Span, r vg.Rectangle) {
	out := &g.marks
	if s.Outcome == sim.OutcomeOOM {
		out = &g.ooms
	}
	gap := math.Min(1, g.lane/6)
	left, bottom := float64(r.Min.X), float64(r.Min.Y)+gap/2
	width, height := math.Max(0.6, float64(r.Max.X-r.Min.X)-0.4), float64(r.Max.Y-r.Min.Y)-gap
	fmt.Fprintf(out, `<g class="%s"><title>%s</title><rect x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`,
		g.class(s), template.HTMLEscapeString(clean(g.title(s))), left, bottom, width, height)
	if s.Outcome == sim.OutcomeOOM {
		out.WriteString(cross(left+width, bottom+height/2, math.Min(3.5, height/2)))
	}
	if name := s.Task.String(); height >= 9 && width > 6*float64(len(name))+4 {
		fmt.Fprintf(out, `<text transform="translate(%.1f,%.1f) scale(1,-1)">%s</text>`, left+3, bottom+height/2-3, name)
	}
	out.WriteString("</g>")
}

// attempt names one of a task.
type attempt struct {
	task mapper.TaskID
	n    int
}

// leash is the line from where a task left a GPU to where it came back, as SVG.
func (g *gantt) leash(from, to sim.Span, a, b vg.Point) {
	name := from.Name
	if t := g.tasks[from.Task]; t != nil {
		name = t.Name
	}
	title := fmt.Sprintf("task %d: %s · suspended on GPU %d for %s, back on GPU %d", from.Task, name, g.line.GPUs[from.GPU].Index, Span(to.Launched.Sub(from.Ended)), g.line.GPUs[to.GPU].Index)
	fmt.Fprintf(&g.away, `<g class="away"><title>%s</title><path d="M%.1f,%.1fL%.1f,%.1f"/></g>`, template.HTMLEscapeString(clean(title)), float64(a.X), float64(a.Y), float64(b.X), float64(b.Y))
}

// cross marks an attempt that ran out of memory.
func cross(x, y, arm float64) string {
	return fmt.Sprintf(`<path d="M%.1f,%.1fl%.1f,%.1fm0,%.1fl%.1f,%.1f"/>`, x-arm, y-arm, 2*arm, 2*arm, -2*arm, -2*arm, 2*arm)
}

func (g *gantt) title(s sim.Span) string {
	name, ended, ran := s.Name, "failed or stopped", time.Duration(0)
	used := ""
	if t := g.tasks[s.Task]; t != nil {
		name = t.Name
		if t.EnergyJ > 0 {
			used = " · the task used " + energy(t.EnergyJ)
		}
	}
	switch s.Outcome {
	case sim.OutcomeOK:
		ended = "finished"
	case sim.OutcomeAway:
		ended = "suspended"
	case sim.OutcomeOOM:
		ended = "out of GPU memory"
	}
	if s.Started > 0 {
		ran = s.Ended.Sub(s.Started)
	}
	return fmt.Sprintf("task %d: %s · GPU %d, attempt %d · launched at %s, ran %s, %s%s",
		s.Task, name, g.line.GPUs[s.GPU].Index, s.Attempt, Span(s.Launched.Sub(g.line.Start)), Span(ran), ended, used)
}
