package zoo

import (
	"fmt"

	"carma/configs/models"
)

// mobileNets are of Sandler et al. 2018 and Howard et al. 2019.
func mobileNets() group {
	return group{name: "mobilenet", description: "inverted residuals for small devices (MobileNet)", entries: []entry{
		{
			name: "mobilenet_v2", aliases: []string{"mobilenet"}, kind: models.Conv, batch: 32, size: imageNet,
			build: mobileNetV2,
		},
		{
			name: "mobilenet_v3_small", kind: models.Conv, batch: 32, size: imageNet,
			build: func(g *graph, s settings) { g.mobileNetV3(mobileSmall, 1024, s) },
		},
		{
			name: "mobilenet_v3_large", kind: models.Conv, batch: 32, size: imageNet,
			build: func(g *graph, s settings) { g.mobileNetV3(mobileLarge, 1280, s) },
		},
	}}
}

func mobileNetV2(g *graph, s settings) {
	g.photo(3, s)
	x := g.activated("features.0", data, window{out: 32, kernel: 3, stride: 2, pad: 1}, models.ReLU6)
	number := 0
	for _, r := range []struct{ expand, out, repeats, stride int64 }{
		{1, 16, 1, 1},
		{6, 24, 2, 2},
		{6, 32, 3, 2},
		{6, 64, 4, 2},
		{6, 96, 3, 1},
		{6, 160, 3, 2},
		{6, 320, 1, 1},
	} {
		for i := range r.repeats {
			stride := r.stride
			if i > 0 {
				stride = 1
			}
			number++
			x = g.inverted(fmt.Sprintf("features.%d", number), x, r.expand, r.out, stride)
		}
	}
	x = g.activated(fmt.Sprintf("features.%d", number+1), x, window{out: 1280}, models.ReLU6)
	x = g.drop("classifier.0", g.flatten(g.mean("avgpool", x)))
	g.classify(g.linear("classifier.1", x, s.classes, true))
}

// activated adds a convolution, its batch norm and an activation in place. ReLU6
// is added as not in place: its gradient needs its input, so in place it would
// keep a copy of that, which is the same memory. ReLU is different; it needs only
// its output.
func (g *graph) activated(name string, in int, w window, activation string) int {
	x := g.convNorm(name+".0", name+".1", in, w)
	switch activation {
	case "":
		return x
	case models.ReLU6:
		return g.unary(activation, name+".2", x)
	}
	return g.inPlace(activation, name+".2", x)
}

func (g *graph) inverted(name string, in int, expand, out, stride int64) int {
	defer g.startBlock(name)()
	from := g.shape(in)[0]
	wide, x := from*expand, in
	if expand != 1 {
		x = g.activated("conv.expand", x, window{out: wide}, models.ReLU6)
	}
	x = g.activated("conv.depthwise", x, window{out: wide, kernel: 3, pad: 1, stride: stride, groups: wide}, models.ReLU6)
	x = g.activated("conv.project", x, window{out: out}, "")
	if stride == 1 && from == out {
		return g.plus("add", in, x)
	}
	return x
}

type mobileRow struct {
	kernel, wide, out int64
	squeeze, swish    bool
	stride            int64
}

var mobileSmall = []mobileRow{
	{3, 16, 16, true, false, 2},
	{3, 72, 24, false, false, 2},
	{3, 88, 24, false, false, 1},
	{5, 96, 40, true, true, 2},
	{5, 240, 40, true, true, 1},
	{5, 240, 40, true, true, 1},
	{5, 120, 48, true, true, 1},
	{5, 144, 48, true, true, 1},
	{5, 288, 96, true, true, 2},
	{5, 576, 96, true, true, 1},
	{5, 576, 96, true, true, 1},
}

var mobileLarge = []mobileRow{
	{3, 16, 16, false, false, 1},
	{3, 64, 24, false, false, 2},
	{3, 72, 24, false, false, 1},
	{5, 72, 40, true, false, 2},
	{5, 120, 40, true, false, 1},
	{5, 120, 40, true, false, 1},
	{3, 240, 80, false, true, 2},
	{3, 200, 80, false, true, 1},
	{3, 184, 80, false, true, 1},
	{3, 184, 80, false, true, 1},
	{3, 480, 112, true, true, 1},
	{3, 672, 112, true, true, 1},
	{5, 672, 160, true, true, 2},
	{5, 960, 160, true, true, 1},
	{5, 960, 160, true, true, 1},
}

func (g *graph) mobileNetV3(rows []mobileRow, last int64, s settings) {
	g.photo(3, s)
	features := g.mobileFeatures(rows)
	x := g.flatten(g.mean("avgpool", features[len(features)-1]))
	x = g.inPlace(models.HardSwish, "classifier.1", g.linear("classifier.0", x, last, true))
	x = g.dropInPlace("classifier.2", x)
	g.classify(g.linear("classifier.3", x, s.classes, true))
}

// mobileFeatures builds the convolutions of a MobileNetV3 and returns the output of each.
func (g *graph) mobileFeatures(rows []mobileRow) []int {
	x := g.activated("features.0", data, window{out: 16, kernel: 3, stride: 2, pad: 1}, models.HardSwish)
	features := []int{x}
	for i, r := range rows {
		x = g.mobileBlock(fmt.Sprintf("features.%d", i+1), x, r)
		features = append(features, x)
	}
	x = g.activated(fmt.Sprintf("features.%d", len(rows)+1), x, window{out: 6 * g.shape(x)[0]}, models.HardSwish)
	return append(features, x)
}

func (g *graph) mobileBlock(name string, in int, r mobileRow) int {
	defer g.startBlock(name)()
	activation := models.ReLU
	if r.swish {
		activation = models.HardSwish
	}
	x, from := in, g.shape(in)[0]
	if r.wide != from {
		x = g.activated("block.expand", x, window{out: r.wide}, activation)
	}
	w := window{out: r.wide, kernel: r.kernel, pad: r.kernel / 2, stride: r.stride, groups: r.wide}
	x = g.activated("block.depthwise", x, w, activation)
	if r.squeeze {
		x = g.squeeze("block.se", x, divisible(float64(r.wide/4)), func(name string, in int) int {
			return g.unary(models.ReLU, name, in)
		}, models.HardSigmoid)
	}
	x = g.activated("block.project", x, window{out: r.out}, "")
	if r.stride == 1 && from == r.out {
		return g.plusInPlace("add", x, in)
	}
	return x
}

// squeeze scales the channels by factors that two small convolutions compute from
// their means.
func (g *graph) squeeze(name string, in int, narrow int64, activate func(string, int) int, gate string) int {
	defer g.module(name)()
	x := g.conv("fc1", g.mean("avgpool", in), window{out: narrow, bias: true})
	x = g.conv("fc2", activate("activation", x), window{out: g.shape(in)[0], bias: true})
	return g.times("mul", in, g.unary(gate, "scale_activation", x))
}

// divisible rounds a number of channels to a multiple of 8, but not down by more
// than a tenth.
func divisible(channels float64) int64 {
	n := max(8, int64(channels+4)/8*8)
	if float64(n) < 0.9*channels {
		n += 8
	}
	return n
}
