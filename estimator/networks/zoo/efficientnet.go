package zoo

import (
	"fmt"
	"math"

	"carma/configs/models"
)

// efficientNets are of Tan and Le 2019, each with its own image size.
func efficientNets() group {
	c := group{name: "efficientnet", description: "scaled inverted residuals with squeeze and excitation (EfficientNet)"}
	for i, v := range []struct {
		width, depth float64
		image        int64
	}{
		{1, 1, 224}, {1, 1.1, 240}, {1.1, 1.2, 260}, {1.2, 1.4, 300}, {1.4, 1.8, 380}, {1.6, 2.2, 456}, {1.8, 2.6, 528},
		{2, 3.1, 600},
	} {
		e := entry{
			name: fmt.Sprintf("efficientnet_b%d", i), kind: models.Conv, batch: 32,
			size:  settings{image: v.image, classes: 1000},
			build: func(g *graph, s settings) { g.efficientNet(v.width, v.depth, s) },
		}
		if i == 0 {
			e.aliases = []string{"efficientnet"}
		}
		c.entries = append(c.entries, e)
	}
	return c
}

func (g *graph) efficientNet(width, depth float64, s settings) {
	g.photo(3, s)
	x := g.activated("features.0", data, window{out: divisible(32 * width), kernel: 3, stride: 2, pad: 1}, models.SiLU)
	number := 0
	for stage, r := range []struct {
		expand, kernel, stride int64
		out, repeats           float64
	}{
		{1, 3, 1, 16, 1},
		{6, 3, 2, 24, 2},
		{6, 5, 2, 40, 2},
		{6, 3, 2, 80, 3},
		{6, 5, 1, 112, 3},
		{6, 5, 2, 192, 4},
		{6, 3, 1, 320, 1},
	} {
		for i := range int(math.Ceil(r.repeats * depth)) {
			stride := r.stride
			if i > 0 {
				stride = 1
			}
			name := fmt.Sprintf("features.%d.%d", stage+1, i)
			x = g.mbConv(name, x, r.expand, r.kernel, stride, divisible(r.out*width), number > 0)
			number++
		}
	}
	x = g.activated("features.8", x, window{out: 4 * g.shape(x)[0]}, models.SiLU)
	x = g.dropInPlace("classifier.0", g.flatten(g.mean("avgpool", x)))
	g.classify(g.linear("classifier.1", x, s.classes, true))
}

func (g *graph) mbConv(name string, in int, expand, kernel, stride, out int64, skip bool) int {
	defer g.startBlock(name)()
	from := g.shape(in)[0]
	wide, x := divisible(float64(from*expand)), in
	if wide != from {
		x = g.activated("block.expand", x, window{out: wide}, models.SiLU)
	}
	w := window{out: wide, kernel: kernel, pad: kernel / 2, stride: stride, groups: wide}
	x = g.activated("block.depthwise", x, w, models.SiLU)
	x = g.squeeze("block.se", x, max(1, from/4), func(name string, in int) int {
		return g.inPlace(models.SiLU, name, in)
	}, models.Sigmoid)
	x = g.activated("block.project", x, window{out: out}, "")
	if stride != 1 || from != out {
		return x
	}
	if skip {
		x = g.skip("stochastic_depth", x)
	}
	return g.plusInPlace("add", x, in)
}
