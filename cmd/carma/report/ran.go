package report

import (
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/mapper/sim"
)

// lanesOf assigns each span the first free lane of its GPU.
func lanesOf(spans []sim.Span, gpus int) (lanes []int) {
	free := make([][]units.Instant, gpus) // by GPU and lane: the instant at which it becomes free
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

// Sizes in the picture of the tasks on GPUs, in its own units.
const (
	ranWidth, ranLeft, ranRight = 960.0, 58.0, 14.0
	laneHeight, bandGap         = 18.0, 8.0
	titleHeight, runGap         = 24.0, 16.0
	legendRow, letterWidth      = 18.0, 6.2
)

// pictureColours returns the style sheet of a separate picture, light or dark by the
// system's setting.
func pictureColours() string {
	return fmt.Sprintf(":root { color-scheme: light dark; %s%s }\n@media (prefers-color-scheme: dark) { :root { %s%s } }\n%s", lightPaper, lightColours, darkPaper, darkColours, colourClasses())
}

const pictureStyle = `text { font: 12px system-ui, "DejaVu Sans", sans-serif; fill: var(--ink); } .title { font-weight: 600; } .dim { fill: var(--muted); }
.paper { fill: var(--page); } .rule { stroke: var(--faint); } .bar { fill: currentColor; } .name { fill: var(--bar); font-size: 11px; } .stopped { color: var(--stop); }
.oom { color: var(--limit); } .oom .bar { fill-opacity: .45; } .cross { fill: none; stroke: var(--limit); stroke-width: 2; } .away { stroke: var(--ink); stroke-dasharray: 3 2; opacity: .7; }
`

// WritePicture writes the timeline of each GPU as SVG, with a part for each of the runs.
// They have the same time axis, as long as the longest run of the data.
func WritePicture(w io.Writer, d Data, shown []Run) error {
	length := time.Second
	for i := range d.Runs {
		if line := d.Runs[i].Timeline; line != nil {
			length = max(length, line.End.Sub(line.Start))
		}
	}
	p := picture{kinds: rankKinds(d.Runs), x: newTimeAxis(length, 9), tasks: map[model.TaskID]*Task{}}
	p.y = 6
	for i := range shown {
		if shown[i].Timeline != nil {
			p.run(&shown[i])
		}
	}
	p.legend()
	_, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %.0f" role="img" aria-label="%s">
<style>%s%s</style>
<rect class="paper" width="100%%" height="100%%" rx="8"/>
%s</svg>
`, ranWidth, p.y, template.HTMLEscapeString("What ran where: "+clean(d.Trace)), pictureColours(), pictureStyle, p.out.String())
	return err
}

// picture is a picture that is being drawn.
type picture struct {
	kinds        kindRanks
	x            timeAxis
	tasks        map[model.TaskID]*Task // only for look-up
	out          strings.Builder
	y            float64 // position of the next part
	stopped, oom bool
}

func (p *picture) at(s float64) float64 { return ranLeft + s/p.x.end*(ranWidth-ranLeft-ranRight) }

func (p *picture) run(r *Run) {
	line := r.Timeline
	for i := range r.Tasks {
		p.tasks[r.Tasks[i].ID] = &r.Tasks[i]
	}
	m := &r.Metrics
	fmt.Fprintf(&p.out, `<text x="10" y="%.1f"><tspan class="title">%s</tspan><tspan class="dim" dx="10">all done after %s, on average after %s</tspan></text>`+"\n",
		p.y+15, template.HTMLEscapeString(clean(r.Policy)), Span(m.Makespan), Span(m.MeanJCT))
	p.y += titleHeight
	lanes := lanesOf(line.Spans, len(line.GPUs))
	most := make([]int, len(line.GPUs))
	for i, s := range line.Spans {
		most[s.GPU] = max(most[s.GPU], lanes[i]+1)
	}
	tops, top := make([]float64, len(line.GPUs)), p.y
	for i := range line.GPUs {
		tops[i] = p.y
		height := float64(max(1, most[i])) * laneHeight
		fmt.Fprintf(&p.out, `<text x="10" y="%.1f" class="dim">GPU %d</text>`+"\n", p.y+13, line.GPUs[i].Index)
		p.y += height + bandGap
		if i+1 < len(line.GPUs) {
			fmt.Fprintf(&p.out, `<path class="rule" d="M10,%.1fH%.1f"/>`+"\n", p.y-bandGap/2, ranWidth-ranRight)
		}
	}
	p.axis(top, p.y)
	left := map[attempt]int{} // the last span of each suspended attempt; only for look-up
	for i, s := range line.Spans {
		y := tops[s.GPU] + float64(lanes[i])*laneHeight
		key := attempt{s.Task, s.Attempt}
		if n, ok := left[key]; ok {
			from := line.Spans[n]
			fmt.Fprintf(&p.out, `<path class="away" d="M%.1f,%.1fL%.1f,%.1f"/>`+"\n", p.at(seconds(line, from.Ended)), tops[from.GPU]+(float64(lanes[n])+0.5)*laneHeight, p.at(seconds(line, s.Launched)), y+laneHeight/2)
		}
		if delete(left, key); s.Outcome == sim.OutcomeAway {
			left[key] = i
		}
		p.span(line, s, y)
	}
	p.y += titleHeight + runGap
}

// axis draws the time ticks below the bands of a run.
func (p *picture) axis(top, bottom float64) {
	for _, t := range p.x.ticks {
		fmt.Fprintf(&p.out, `<path class="rule" d="M%.1f,%.1fV%.1f"/><text class="dim" x="%.1f" y="%.1f" text-anchor="middle">%s</text>`+"\n",
			p.at(t.at), top, bottom+3, p.at(t.at), bottom+16, t.label)
	}
}

// attempt identifies an attempt of a task.
type attempt struct {
	task model.TaskID
	n    int
}

func (p *picture) span(line *sim.Timeline, s sim.Span, y float64) {
	class, name := "rest", s.Name
	if t := p.tasks[s.Task]; t != nil {
		class, name = p.kinds.class(t.Kind), t.Name
	}
	switch s.Outcome {
	case sim.OutcomeOOM:
		class, p.oom = "oom", true
	case sim.OutcomeOther:
		class, p.stopped = "stopped", true
	}
	x, height := p.at(seconds(line, s.Launched)), laneHeight-2
	width := max(1.5, p.at(seconds(line, s.Ended))-x-0.5)
	fmt.Fprintf(&p.out, `<g class="%s"><title>%s</title><rect class="bar" x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="2"/>`,
		class, template.HTMLEscapeString(clean(fmt.Sprintf("task %d: %s, attempt %d, %s", s.Task, name, s.Attempt, outcomeWord(s.Outcome)))), x, y+1, width, height)
	text := fmt.Sprintf("%d %s", s.Task, name)
	if s.Attempt > 1 {
		text += fmt.Sprintf(", attempt %d", s.Attempt)
	}
	if room := int((width - 8) / letterWidth); room >= len(s.Task.String()) {
		if runes := []rune(clean(text)); len(runes) > room {
			text = s.Task.String()
			if room > 8 {
				text = string(runes[:room-1]) + "…"
			}
		}
		fmt.Fprintf(&p.out, `<text class="name" x="%.1f" y="%.1f">%s</text>`, x+4, y+13, template.HTMLEscapeString(clean(text)))
	}
	if s.Outcome == sim.OutcomeOOM {
		end := x + width
		fmt.Fprintf(&p.out, `<path class="cross" d="M%.1f,%.1fl10,10m0,-10l-10,10"/>`, end-5, y+4)
	}
	p.out.WriteString("</g>\n")
}

// legend draws the names of the colours, in as many lines as necessary.
func (p *picture) legend() {
	p.y -= runGap - 6
	x := 10.0
	entry := func(mark, name string) {
		width := 32 + (letterWidth+0.6)*float64(len([]rune(name)))
		if x+width > ranWidth-ranRight && x > 10 {
			x, p.y = 10, p.y+legendRow
		}
		fmt.Fprintf(&p.out, `<g transform="translate(%.1f,%.1f)">%s<text class="dim" x="18" y="11">%s</text></g>`+"\n", x, p.y, mark, template.HTMLEscapeString(name))
		x += width
	}
	for _, k := range p.kinds.legend {
		entry(fmt.Sprintf(`<rect class="bar %s" width="12" height="12" rx="2"/>`, k.Class), k.Name)
	}
	if p.oom {
		entry(`<path class="cross" d="M1,1l10,10m0,-10l-10,10"/>`, "ran out of GPU memory")
	}
	if p.stopped {
		entry(`<rect class="bar stopped" width="12" height="12" rx="2"/>`, "failed or stopped")
	}
	p.y += legendRow + 6
}
