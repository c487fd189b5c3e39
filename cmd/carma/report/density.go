package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg/draw"
)

// densityBins is how many steps a band has.
const densityBins = 240

// Bands fit in a height, if that leaves each between these.
const bandsHeight, thinBand, thickBand = 620.0, 18.0, 60.0

// density is the chart for many attempts: how many ran on each GPU, by kind,
// the mean over bins of time. It is a plot.Plotter.
type density struct {
	frame
	counts  [][]layer // of each GPU, from the bottom
	ooms    [][]int   // attempts that ended out of memory, by GPU and bin
	most    float64   // of all kinds in a bin
	seconds float64   // length of a bin
	marks   strings.Builder
}

// layer is the mean number of attempts of one colour in each bin.
type layer struct {
	class string
	mean  []float64
}

func newDensity(f frame) *density {
	d := &density{frame: f, seconds: seconds(f.line, f.line.End) / densityBins}
	n := min(shownBands, len(f.line.GPUs))
	for range n {
		d.counts, d.ooms = append(d.counts, nil), append(d.ooms, make([]int, densityBins))
	}
	for _, s := range d.spans {
		class := d.class(s)
		if class == "oom" {
			d.ooms[s.GPU][min(densityBins-1, int(seconds(d.line, s.Ended)/d.seconds))]++
		}
		d.layer(s.GPU, class).add(seconds(d.line, s.Launched)/d.seconds, seconds(d.line, s.Ended)/d.seconds)
	}
	for gpu, layers := range d.counts {
		slices.SortFunc(layers, func(a, b layer) int { return strings.Compare(a.class, b.class) })
		for i := range densityBins {
			sum := 0.0
			for _, l := range d.counts[gpu] {
				sum += l.mean[i]
			}
			d.most = math.Max(d.most, sum)
		}
	}
	height := math.Max(thinBand, math.Min(thickBand, bandsHeight/float64(n)))
	for range n {
		d.addBand(height*0.86, height*0.14)
	}
	return d
}

func (d *density) layer(gpu int, class string) layer {
	for _, l := range d.counts[gpu] {
		if l.class == class {
			return l
		}
	}
	l := layer{class, make([]float64, densityBins)}
	d.counts[gpu] = append(d.counts[gpu], l)
	return l
}

// add counts an attempt from one point to another, in bins.
func (l layer) add(from, to float64) {
	for i := max(0, int(from)); i < densityBins && float64(i) < to; i++ {
		l.mean[i] += math.Min(to, float64(i+1)) - math.Max(from, float64(i))
	}
}

func (d *density) figure(x timeAxis, name string) (figure, error) {
	f, err := d.draw(x, name, d, func() string { return `<g class="gantt">` + d.marks.String() + "</g>" })
	f.Note = strings.TrimSpace(fmt.Sprintf(
		"%d attempts are too many to show each: the height of a colour is how many of that kind run on the GPU, the mean over %s; a whole band is %.3g. %s",
		len(d.spans), Span(time.Duration(d.seconds*float64(time.Second))), d.most, f.Note))
	return f, err
}

// Plot makes the marks: the layers of each band on top of each other.
func (d *density) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	left, width := float64(x(0)), float64(x(d.seconds)-x(0))
	for gpu, b := range d.bands {
		bottom, unit := float64(y(-b.top-b.height)), b.height/math.Max(1, d.most)
		below := make([]float64, densityBins)
		for _, l := range d.counts[gpu] {
			d.marks.WriteString(l.path(below, left, bottom, width, unit))
		}
		d.marks.WriteString(`<g class="oom">`)
		for i, n := range d.ooms[gpu] {
			if n > 0 {
				fmt.Fprintf(&d.marks, `<g><title>%d ran out of GPU memory</title>%s</g>`, n, cross(left+(float64(i)+0.5)*width, bottom+3, 2.5))
			}
		}
		d.marks.WriteString("</g>")
	}
}

// path is a layer as SVG, y upwards, and adds it to what is below the next.
func (l layer) path(below []float64, left, bottom, width, unit float64) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<path class="%s" d="M%.1f,%.1f`, l.class, left, bottom+below[0]*unit)
	for i := range below {
		fmt.Fprintf(&b, "V%.1fH%.1f", bottom+(below[i]+l.mean[i])*unit, left+float64(i+1)*width)
	}
	for i := len(below) - 1; i >= 0; i-- {
		fmt.Fprintf(&b, "V%.1fH%.1f", bottom+below[i]*unit, left+float64(i)*width)
		below[i] += l.mean[i]
	}
	b.WriteString(`Z"/>`)
	return b.String()
}
