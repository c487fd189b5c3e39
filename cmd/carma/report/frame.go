package report

import (
	"fmt"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg/draw"

	"carma/mapper"
	"carma/mapper/sim"
)

const chartWidth, chartLeft, chartTicks = 1120.0, 44.0, 16

// frame is what both charts of what ran where have: a band for each GPU.
type frame struct {
	line  *sim.Timeline
	spans []sim.Span              // on the GPUs shown, by launch
	tasks map[mapper.TaskID]*Task // look-up only
	kinds kindRanks

	bands []band
	lane  float64 // height of one
	end   float64 // height of all
}

// band is the room of one GPU, from the top of the chart.
type band struct{ top, height float64 }

func (f *frame) addBand(height, gap float64) {
	f.bands = append(f.bands, band{f.end + gap/2, height})
	f.end += height + gap
}

// draw draws the bands, what a plotter makes of them, and its marks on top.
func (f *frame) draw(x timeAxis, name string, content plot.Plotter, marks func() string) (figure, error) {
	var names []plot.Tick
	for i, b := range f.bands {
		names = append(names, plot.Tick{Value: -b.top - b.height/2, Label: fmt.Sprintf("GPU %d", f.line.GPUs[i].Index)})
	}
	p := bare(x, -f.end, 0, names)
	p.Y.Tick.Length = 0
	grid := plotter.NewGrid()
	grid.Horizontal.Color = nil
	grid.Vertical = gridLine
	p.Add(grid, between(f.bands), content)
	svg, err := render(p, size{chartWidth, f.end + 26, chartLeft}, name, marks)
	fig := figure{SVG: svg}
	if n := len(f.line.GPUs); n > shownBands {
		fig.Note = fmt.Sprintf("The first %d of %d GPUs.", shownBands, n)
	}
	return fig, err
}

// class is that of a span's colour.
func (f *frame) class(s sim.Span) string {
	switch s.Outcome {
	case sim.OutcomeOOM:
		return "oom"
	case sim.OutcomeOther:
		return "stopped"
	}
	if t := f.tasks[s.Task]; t != nil {
		return f.kinds.class(t.Kind)
	}
	return "rest"
}

// between draws lines between bands. It is a plot.Plotter.
type between []band

// Plot draws them.
func (b between) Plot(c draw.Canvas, p *plot.Plot) {
	_, y := p.Transforms(&c)
	for i := 1; i < len(b); i++ {
		at := y(-(b[i-1].top + b[i-1].height + b[i].top) / 2)
		c.StrokeLine2(gridLine, c.Min.X, at, c.Max.X, at)
	}
}
