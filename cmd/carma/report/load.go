package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg/draw"
)

// Load is what arrives over time: a log or a trace before it is replayed.
type Load struct {
	Name  string
	Facts []string
	// Gaps between arrivals and run times, sorted.
	Gaps, RunTimes        []time.Duration
	GPUs, Classes, States []Share
	Bin                   time.Duration // of the two that follow
	Demand                []float64     // GPUs busy if every task began as it arrives
	Arrivals              []int         // tasks
}

// Share is how many tasks are of a kind.
type Share struct {
	Name  string
	Count int
}

//go:embed load.html
var loadSource string

//go:embed load.css
var loadStyle string

var loadPage = template.Must(template.New("load").Parse(loadSource))

// WriteLoad writes a page on a load, which needs nothing else.
func WriteLoad(w io.Writer, l Load) error {
	p := struct {
		Name                string
		Style               template.CSS
		Facts               []string
		Over, Distributions []figure
		Shares              []shares
	}{Name: clean(l.Name), Style: template.CSS(pictureColours() + loadStyle)}
	for _, f := range l.Facts {
		p.Facts = append(p.Facts, clean(f))
	}
	counts := make([]float64, len(l.Arrivals))
	for i, n := range l.Arrivals {
		counts[i] = float64(n)
	}
	for _, one := range []struct {
		caption string
		values  []float64
	}{
		{"GPUs in demand: busy if every task began as it arrives", l.Demand},
		{"Tasks that arrive within " + Span(l.Bin), counts},
	} {
		f, err := l.over(one.caption, one.values)
		if err != nil {
			return err
		}
		p.Over = append(p.Over, f)
	}
	for _, one := range []struct {
		caption string
		values  []time.Duration
	}{{"Gaps: share of those of at most (%)", l.Gaps}, {"Run times: share of those of at most (%)", l.RunTimes}} {
		f, err := logarithmic(one.caption, one.values)
		if err != nil {
			return err
		}
		p.Distributions = append(p.Distributions, f)
	}
	for _, one := range []shares{{"GPUs per task", l.GPUs, 0}, {"Class: light under 10 min, heavy over 1 h or on several GPUs", l.Classes, 0}, {"How tasks ended", l.States, 0}} {
		for _, s := range one.List {
			one.most = max(one.most, s.Count)
		}
		if len(one.List) > 0 {
			p.Shares = append(p.Shares, one)
		}
	}
	return loadPage.Execute(w, p)
}

// figure is one picture.
type figure struct {
	Caption string
	SVG     template.HTML
}

var medium = size{width: 420, height: 230, left: 34}

const (
	chartWidth, chartLeft, chartTicks = 1120.0, 44.0, 16
	// curvePoints is how many points a curve over tasks has at most.
	curvePoints = 600
)

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

// over is a picture over time, in steps of the bins.
func (l *Load) over(caption string, values []float64) (figure, error) {
	most := 0.0
	var area points
	for i, v := range values {
		most = math.Max(most, v)
		at := float64(i) * l.Bin.Seconds()
		area = append(area, plotter.XY{X: at, Y: v}, plotter.XY{X: at + l.Bin.Seconds(), Y: v})
	}
	end, ticks := upTo(most, 4, true)
	p := newPlot(newTimeAxis(time.Duration(len(values))*l.Bin, chartTicks), end, ticks)
	p.Add(series{points: area, line: draw.LineStyle{Color: colours[0].line, Width: 1.2}, area: colours[0].area})
	svg, err := render(p, size{chartWidth, 190, chartLeft}, caption, nil)
	return figure{Caption: caption, SVG: svg}, err
}

// decades are ticks of a logarithmic axis of time.
var decades = []struct {
	seconds float64
	name    string
}{
	{1, "1 s"}, {10, "10 s"}, {60, "1 min"}, {600, "10 min"}, {3600, "1 h"}, {36000, "10 h"}, {345600, "4 d"}, {2592000, "30 d"}, {31536000, "1 y"}, {315360000, "10 y"},
}

// logarithmic is the cumulative distribution of times on a logarithmic axis,
// which begins at a second.
func logarithmic(caption string, values []time.Duration) (figure, error) {
	logs := make([]float64, len(values))
	x := timeAxis{end: 1}
	for i, v := range values {
		logs[i] = math.Log10(math.Max(1, v.Seconds()))
		x.end = math.Max(x.end, logs[i])
	}
	for _, d := range decades {
		if at := math.Log10(d.seconds); at <= x.end {
			x.ticks = append(x.ticks, plot.Tick{Value: at, Label: d.name})
		}
	}
	end, ticks := upTo(100, 4, true)
	p := newPlot(x, end, ticks)
	p.Add(series{points: cumulative(logs), line: draw.LineStyle{Color: colours[0].line, Width: 1.6}})
	svg, err := render(p, medium, caption, nil)
	return figure{Caption: caption, SVG: svg}, err
}

// shares are bars of one kind of counts.
type shares struct {
	Title string
	List  []Share
	most  int
}

// Percent is a count's share of all.
func (s shares) Percent(n int) string {
	sum := 0
	for _, one := range s.List {
		sum += one.Count
	}
	return fmt.Sprintf("%.1f %%", 100*float64(n)/math.Max(1, float64(sum)))
}

// Bar is a bar as long as a count, for the page.
func (s shares) Bar(n int) template.HTML {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 200 12" preserveAspectRatio="none" style="width:200px;height:12px"><rect width="%.1f" height="12" fill="var(--p0)"/></svg>`, 200*float64(n)/math.Max(1, float64(s.most)))
	return template.HTML(b.String())
}
