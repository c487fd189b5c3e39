package zoo

import (
	"fmt"

	"carma/configs/models"
)

// mnasNets are of Tan et al. 2019, in torchvision's widths.
func mnasNets() group {
	c := group{name: "mnasnet", description: "searched inverted residuals for phones (MnasNet)"}
	for _, v := range []struct {
		name  string
		alpha float64
	}{{"mnasnet0_5", 0.5}, {"mnasnet0_75", 0.75}, {"mnasnet1_0", 1}, {"mnasnet1_3", 1.3}} {
		e := entry{
			name: v.name, kind: models.Conv, batch: 32, size: imageNet,
			build: func(g *graph, s settings) { g.mnasNet(v.alpha, s) },
		}
		if v.alpha == 1 {
			e.aliases = []string{"mnasnet"}
		}
		c.entries = append(c.entries, e)
	}
	return c
}

func (g *graph) mnasNet(alpha float64, s settings) {
	width := func(channels float64) int64 { return divisible(alpha * channels) }
	g.photo(3, s)
	x := g.activated("layers.0", data, window{out: width(32), kernel: 3, stride: 2, pad: 1}, models.ReLU)
	x = g.activated("layers.3", x, window{out: width(32), kernel: 3, pad: 1, groups: width(32)}, models.ReLU)
	x = g.activated("layers.6", x, window{out: width(16)}, "")
	for i, r := range []struct{ kernel, expand, out, repeats, stride int64 }{
		{3, 3, 24, 3, 2},
		{5, 3, 40, 3, 2},
		{5, 6, 80, 3, 2},
		{3, 6, 96, 2, 1},
		{5, 6, 192, 4, 2},
		{3, 6, 320, 1, 1},
	} {
		for k := range r.repeats {
			stride := r.stride
			if k > 0 {
				stride = 1
			}
			x = g.mnasBlock(fmt.Sprintf("layers.%d.%d", 8+i, k), x, r.expand, window{out: width(float64(r.out)), kernel: r.kernel, stride: stride})
		}
	}
	x = g.activated("layers.14", x, window{out: 1280}, models.ReLU)
	x = g.dropInPlace("classifier.0", g.flatten(g.mean("mean", x)))
	g.classify(g.linear("classifier.1", x, s.classes, true))
}

// mnasBlock is an inverted residual with ReLU; w is its depthwise convolution's window
// and its output.
func (g *graph) mnasBlock(name string, in int, expand int64, w window) int {
	defer g.startBlock(name)()
	from := g.shape(in)[0]
	x := g.activated("expand", in, window{out: from * expand}, models.ReLU)
	x = g.activated("depthwise", x, window{out: from * expand, kernel: w.kernel, pad: w.kernel / 2, stride: w.stride, groups: from * expand}, models.ReLU)
	x = g.activated("project", x, window{out: w.out}, "")
	if w.stride == 1 && from == w.out {
		return g.plus("add", x, in)
	}
	return x
}
