package zoo

import (
	"fmt"
	"math"

	"carma/configs/models"
)

// regnet is a network of Radosavovic et al. 2020: widths grow in a straight line by
// block, from first by slope, and are rounded to powers of step times first.
type regnet struct {
	depth              int
	first, slope, step float64
	group              int64
	squeeze            bool // squeeze and excite with a quarter of the block's input
}

// regNets have the settings of torchvision.
func regNets() group {
	c := group{name: "regnet", description: "residual networks of searched widths (RegNet)"}
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
		c.entries = append(c.entries, classifier("regnet_"+v.name, "fc", v.r.build))
	}
	return c
}

// widths are those of the blocks, multiples of the groups' width.
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

func (r regnet) build(g *graph) int {
	x := g.activated("stem", data, window{out: 32, kernel: 3, stride: 2, pad: 1}, models.ReLU)
	for i, width := range r.widths() {
		x = r.block(g, fmt.Sprintf("trunk_output.block.%d", i), x, width, i)
	}
	return g.flatten(g.mean("avgpool", x))
}

// block is a bottleneck without narrowing. The first one of a width halves the image.
func (r regnet) block(g *graph, name string, in int, width int64, i int) int {
	defer g.startBlock(name)()
	from, stride := g.shape(in)[0], int64(1)
	if i == 0 || from != width {
		stride = 2
	}
	skip := in
	if stride != 1 {
		skip = g.activated("proj", in, window{out: width, stride: stride}, "")
	}
	x := g.activated("f.a", in, window{out: width}, models.ReLU)
	x = g.activated("f.b", x, window{out: width, kernel: 3, pad: 1, stride: stride, groups: width / min(r.group, width)}, models.ReLU)
	if r.squeeze {
		x = g.squeeze("f.se", x, int64(math.RoundToEven(0.25*float64(from))), g.inPlace, models.ReLU, models.Sigmoid)
	}
	x = g.activated("f.c", x, window{out: width}, "")
	return g.inPlace(models.ReLU, "activation", g.plus("add", skip, x))
}
