package report

import (
	"bytes"
	"fmt"
	"html/template"
	"image/color"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// size is that of a picture in its own units, which are about pixels, and the
// room left of the data, equal in all of a kind so that they line up.
type size struct{ width, height, left float64 }

// margin is the room right of the data, for half of the last tick's label.
const margin = 14

var gridLine = draw.LineStyle{Color: faint, Width: 0.8}

// newPlot is an empty plot in the style of the page, from 0 upwards.
func newPlot(x timeAxis, yEnd float64, yTicks []plot.Tick) *plot.Plot {
	p := bare(x, 0, yEnd, yTicks)
	grid := plotter.NewGrid()
	grid.Vertical.Color = nil
	grid.Horizontal = gridLine
	p.Add(grid)
	return p
}

// bare is a plot without grid lines.
func bare(x timeAxis, yMin, yMax float64, yTicks []plot.Tick) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = nil
	p.X.Min, p.X.Max, p.X.Tick.Marker = 0, x.end, plot.ConstantTicks(x.ticks)
	p.Y.Min, p.Y.Max, p.Y.Tick.Marker = yMin, yMax, plot.ConstantTicks(yTicks)
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Padding = 0
		a.Color = muted
		a.Tick.Color, a.Tick.Length = muted, 3
		a.Tick.Label.Color = ink
		a.Tick.Label.Font = font.Font{Typeface: "Liberation", Variant: "Sans", Size: 10}
	}
	p.Y.LineStyle.Width, p.Y.Tick.LineStyle.Width = 0, 0
	return p
}

// render draws a plot. The marks, SVG in the canvas's coordinates with y
// upwards, go on top; they are asked for after the plot was drawn.
func render(p *plot.Plot, s size, label string, marks func() string) (template.HTML, error) {
	canvas := vgsvg.New(vg.Length(s.width), vg.Length(s.height))
	all := draw.New(canvas)
	used := p.DataCanvas(all).Min.X - all.Min.X
	p.Draw(draw.Crop(all, max(0, vg.Length(s.left)-used), -margin, 0, -6))
	var out bytes.Buffer
	if _, err := canvas.WriteTo(&out); err != nil {
		return "", err
	}
	_, body, opened := strings.Cut(out.String(), "xlink\">\n")
	body, closed := strings.CutSuffix(strings.TrimSpace(body), "</g>\n</svg>")
	if !opened || !closed {
		return "", fmt.Errorf("the plot library writes SVG in another way than it did")
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %g %g" role="img" aria-label="%s">`, s.width, s.height, template.HTMLEscapeString(clean(label)))
	b.WriteString(themeNames.Replace(body))
	if marks != nil {
		b.WriteString(marks())
	}
	b.WriteString("</g></svg>")
	return template.HTML(b.String()), nil
}

// points are a line's, in the units of the axes.
type points = plotter.XYs

// series is a line, or an area under one. Unlike a plotter.Line it asks for no
// room beside the data.
type series struct {
	points points
	line   draw.LineStyle // of width 0: none
	area   color.Color    // nil: none
}

// Plot draws it, as a plot.Plotter does.
func (s series) Plot(c draw.Canvas, p *plot.Plot) {
	if len(s.points) == 0 {
		return
	}
	x, y := p.Transforms(&c)
	var path vg.Path
	for i, xy := range s.points {
		at := vg.Point{X: x(xy.X), Y: y(xy.Y)}
		if i == 0 {
			path.Move(at)
			continue
		}
		path.Line(at)
	}
	if s.area != nil {
		filled := append(vg.Path(nil), path...)
		filled.Line(vg.Point{X: x(s.points[len(s.points)-1].X), Y: y(0)})
		filled.Line(vg.Point{X: x(s.points[0].X), Y: y(0)})
		filled.Close()
		c.SetColor(s.area)
		c.Fill(filled)
	}
	if s.line.Width > 0 {
		c.SetLineStyle(s.line)
		c.Stroke(path)
	}
}
