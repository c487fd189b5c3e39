package vision

import (
	"fmt"
	"math"

	"carma/configs/models"
	"carma/estimator/networks/graph"
)

// regnet is a network of Radosavovic et al. 2020: widths grow linearly by block, from
// first by slope, and are rounded to powers of step times first.
type regnet struct {
	depth              int
	first, slope, step float64
	group              int64
	squeeze            bool // squeeze-and-excite with a quarter of the block's input
}

// RegNets returns the networks with torchvision's settings.
func RegNets() graph.Group {
	c := graph.Group{Name: "regnet", Description: "residual networks of searched widths (RegNet)"}
	for _, v := range []struct {
		name string
		r    regnet
	}{
		{"x_400mf", regnet{22, 24, 24.48, 2.54, 16, false}},
		{"x_800mf", regnet{16, 56, 35.73, 2.28, 16, false}},
		{"x_1_6gf", regnet{18, 80, 34.01, 2.25, 24, false}},
		{"x_3_2gf", regnet{25, 88, 26.31, 2.25, 48, false}},
		{"x_8gf", regnet{23, 80, 49.56, 2.88, 120, false}},
		{"y_400mf", regnet{16, 48, 27.89, 2.09, 8, true}},
		{"y_800mf", regnet{14, 56, 38.84, 2.4, 16, true}},
	} {
		c.Entries = append(c.Entries, graph.Classifier("regnet_"+v.name, "fc", v.r.build))
	}
	return c
}

// widths returns the widths of the blocks, multiples of the groups' width.
func (r regnet) widths() []int64 {
	var widths []int64
	for i := range r.depth {
		line := r.first + r.slope*float64(i)
		power := math.RoundToEven(math.Log(line/r.first) / math.Log(r.step))
		w := 8 * int64(math.RoundToEven(r.first*math.Pow(r.step, power)/8))
		g := min(r.group, w)
		near := max(g, (w+g/2)/g*g)
		if 10*near < 9*w {
			near += g
		}
		widths = append(widths, near)
	}
	return widths
}

func (r regnet) build(g *graph.Graph) int {
	x := activated(g, "stem", graph.Data, graph.Window{Out: 32, Kernel: 3, Stride: 2, Pad: 1}, models.ReLU)
	for i, width := range r.widths() {
		x = r.block(g, fmt.Sprintf("trunk_output.block.%d", i), x, width, i)
	}
	return g.Flatten(g.Mean("avgpool", x))
}

// block adds a bottleneck without narrowing. The first one of a width halves the image.
func (r regnet) block(g *graph.Graph, name string, in int, width int64, i int) int {
	defer g.StartBlock(name)()
	from, stride := g.Shape(in)[0], int64(1)
	if i == 0 || from != width {
		stride = 2
	}
	skip := in
	if stride != 1 {
		skip = activated(g, "proj", in, graph.Window{Out: width, Stride: stride}, "")
	}
	x := activated(g, "f.a", in, graph.Window{Out: width}, models.ReLU)
	x = activated(g, "f.b", x, graph.Window{Out: width, Kernel: 3, Pad: 1, Stride: stride, Groups: width / min(r.group, width)}, models.ReLU)
	if r.squeeze {
		x = squeeze(g, "f.se", x, int64(math.RoundToEven(0.25*float64(from))), g.InPlace, models.ReLU, models.Sigmoid)
	}
	x = activated(g, "f.c", x, graph.Window{Out: width}, "")
	return g.InPlace(models.ReLU, "activation", g.Plus("add", skip, x))
}
