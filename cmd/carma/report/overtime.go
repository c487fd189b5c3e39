package report

import (
	"fmt"

	"carma/mapper/units"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"carma/mapper/sim"
)

// A curve of more points than exact is shown by its means over bins: what is
// narrower than a pixel or two is noise.
const exact, narrowBins, wideBins = 300, 150, 300

var (
	narrow = size{width: 300, height: 125, left: 28}
	wide   = size{width: 600, height: 150, left: 36}
)

const narrowTicks, wideTicks = 6, 10

// overTime are the pictures of what GPUs and queue did.
func overTime(line *sim.Timeline, c colour, sc scales) ([]group, error) {
	shown, note := line.GPUs, ""
	if len(shown) > shownGPUs {
		note = fmt.Sprintf("The first %d of %d GPUs.", shownGPUs, len(shown))
		shown = shown[:shownGPUs]
	}
	memory := group{
		Title: "Memory (GiB)", Note: note,
		Legend: []legendEntry{{"used", "area " + c.class}, {"reserved", "line reserved"}, {"capacity", "line limit"}},
	}
	smact := group{Title: "SM activity (%)", Note: note}
	for _, g := range shown {
		name := fmt.Sprintf("GPU %d", g.Index)
		m, err := memoryFigure(name, line, g, c, sc)
		if err != nil {
			return nil, err
		}
		a, err := areaFigure(name, narrow, steps(line, g.SMACT, 100, narrowBins), c, sc.time(narrowTicks), 100)
		if err != nil {
			return nil, err
		}
		memory.Figures, smact.Figures = append(memory.Figures, m), append(smact.Figures, a)
	}
	power, err := areaFigure("Power of all GPUs (W)", wide, totalPower(line), c, sc.time(wideTicks), sc.power)
	if err != nil {
		return nil, err
	}
	queue, err := areaFigure("Queue (tasks)", wide, steps(line, line.Queue, 1, wideBins), c, sc.time(wideTicks), sc.queue)
	if err != nil {
		return nil, err
	}
	return []group{memory, smact, {Title: "The whole server", Wide: true, Figures: []figure{power, queue}}}, nil
}

// areaFigure is one curve on axes that all policies share.
func areaFigure(caption string, s size, xy points, c colour, x timeAxis, most float64) (figure, error) {
	end, marks := upTo(most, 4, true)
	p := newPlot(x, end, marks)
	p.Add(series{points: xy, area: c.area, line: draw.LineStyle{Color: c.line, Width: 1}})
	svg, err := render(p, s, caption, nil)
	return figure{Caption: caption, SVG: svg}, err
}

// memoryFigure is the memory of one GPU: used below reserved below capacity,
// were all estimates right.
func memoryFigure(name string, line *sim.Timeline, g sim.GPUTimeline, c colour, sc scales) (figure, error) {
	const perGiB = 1 / float64(units.GiB)
	x := sc.time(narrowTicks)
	end, marks := upTo(sc.memory, 4, true)
	p := newPlot(x, end, marks)
	capacity := points{{X: 0, Y: g.Capacity.GiB()}, {X: x.end, Y: g.Capacity.GiB()}}
	p.Add(
		series{points: steps(line, g.Used, perGiB, narrowBins), area: c.area, line: draw.LineStyle{Color: c.line, Width: 1}},
		series{points: steps(line, g.Reserved, perGiB, narrowBins), line: draw.LineStyle{Color: muted, Width: 1}},
		series{points: capacity, line: draw.LineStyle{Color: limit, Width: 1, Dashes: []vg.Length{4, 3}}},
	)
	svg, err := render(p, narrow, "memory of "+name, nil)
	return figure{Caption: name, SVG: svg}, err
}

// steps draws a curve in its unit times a factor: as it is when it has few
// points, else by its means.
func steps(line *sim.Timeline, c sim.Curve, factor float64, bins int) points {
	if len(c) > exact {
		means := c.Resample(line.Start, line.End, bins)
		for i := range means {
			means[i] *= factor
		}
		return binned(line, means)
	}
	var out points
	for i, p := range c {
		at := seconds(line, p.At)
		if i > 0 {
			out = append(out, plotter.XY{X: at, Y: c[i-1].Value * factor})
		}
		out = append(out, plotter.XY{X: at, Y: p.Value * factor})
	}
	if len(out) > 0 {
		out = append(out, plotter.XY{X: seconds(line, line.End), Y: out[len(out)-1].Y})
	}
	return out
}

// binned draws the means of a timeline's bins.
func binned(line *sim.Timeline, means []float64) points {
	var out points
	for i, v := range means {
		if i > 0 && v == means[i-1] {
			continue
		}
		at := seconds(line, sim.BinEdge(line.Start, line.End, len(means), i))
		if i > 0 {
			out = append(out, plotter.XY{X: at, Y: means[i-1]})
		}
		out = append(out, plotter.XY{X: at, Y: v})
	}
	if len(out) > 0 {
		out = append(out, plotter.XY{X: seconds(line, line.End), Y: out[len(out)-1].Y})
	}
	return out
}

// seconds since the start of a timeline.
func seconds(line *sim.Timeline, at units.Instant) float64 { return at.Sub(line.Start).Seconds() }
