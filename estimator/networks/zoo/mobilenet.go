package zoo

import (
	"fmt"

	"carma/configs/models"
)

// mobileNets are of Sandler et al. 2018 and Howard et al. 2019.
func mobileNets() group {
	return group{name: "mobilenet", description: "inverted residuals for small devices (MobileNet)", entries: []entry{
		classifier("mobilenet_v2", "classifier.1", mobileNetV2).called("mobilenet"),
		classifier("mobilenet_v3_small", "classifier.3", mobileNetV3(mobileSmall, 1024)),
		classifier("mobilenet_v3_large", "classifier.3", mobileNetV3(mobileLarge, 1280)),
	}}
}

// inverted is an inverted residual: channels are widened, seen one by one by a
// convolution of kernel pixels, and narrowed. Its layers' names begin with prefix.
type inverted struct {
	prefix                    string
	wide, out, kernel, stride int64
	activation                string
	squeeze                   func(in int) int                 // behind the convolution; nil: nothing
	add                       func(name string, x, in int) int // the input, if it has the output's shape
}

func (b inverted) build(g *graph, name string, in int) int {
	defer g.startBlock(name)()
	x, from := in, g.shape(in)[0]
	if b.wide != from {
		x = g.activated(b.prefix+"expand", x, window{out: b.wide}, b.activation)
	}
	x = g.activated(b.prefix+"depthwise", x, window{out: b.wide, kernel: b.kernel, pad: b.kernel / 2, stride: b.stride, groups: b.wide}, b.activation)
	if b.squeeze != nil {
		x = b.squeeze(x)
	}
	x = g.activated(b.prefix+"project", x, window{out: b.out}, "")
	if b.stride == 1 && from == b.out {
		return b.add("add", x, in)
	}
	return x
}

// only is a stride that only the first of several blocks has.
func only(stride int64, i int) int64 {
	if i > 0 {
		return 1
	}
	return stride
}

func mobileNetV2(g *graph) int {
	x := g.activated("features.0", data, window{out: 32, kernel: 3, stride: 2, pad: 1}, models.ReLU6)
	number := 0
	for _, r := range []struct {
		expand, out int64
		repeats     int
		stride      int64
	}{
		{1, 16, 1, 1},
		{6, 24, 2, 2},
		{6, 32, 3, 2},
		{6, 64, 4, 2},
		{6, 96, 3, 1},
		{6, 160, 3, 2},
		{6, 320, 1, 1},
	} {
		for i := range r.repeats {
			number++
			x = inverted{
				prefix: "conv.", wide: r.expand * g.shape(x)[0], out: r.out, kernel: 3, stride: only(r.stride, i), activation: models.ReLU6,
				add: func(name string, x, in int) int { return g.plus(name, in, x) },
			}.build(g, fmt.Sprintf("features.%d", number), x)
		}
	}
	x = g.activated(fmt.Sprintf("features.%d", number+1), x, window{out: 1280}, models.ReLU6)
	return g.drop("classifier.0", g.flatten(g.mean("avgpool", x)))
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

func mobileNetV3(rows []mobileRow, last int64) func(*graph) int {
	return func(g *graph) int {
		features := g.mobileFeatures(rows)
		x := g.flatten(g.mean("avgpool", features[len(features)-1]))
		x = g.inPlace(models.HardSwish, "classifier.1", g.linear("classifier.0", x, last, true))
		return g.dropInPlace("classifier.2", x)
	}
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
	b := inverted{prefix: "block.", wide: r.wide, out: r.out, kernel: r.kernel, stride: r.stride, activation: models.ReLU, add: g.plusInPlace}
	if r.swish {
		b.activation = models.HardSwish
	}
	if r.squeeze {
		b.squeeze = func(x int) int {
			return g.squeeze("block.se", x, divisible(float64(r.wide/4)), g.unary, models.ReLU, models.HardSigmoid)
		}
	}
	return b.build(g, name, in)
}

// squeeze scales the channels by factors that two small convolutions compute from
// their means. between adds the activation between them.
func (g *graph) squeeze(name string, in int, narrow int64, between func(kind, name string, in int) int, activation, gate string) int {
	defer g.module(name)()
	x := g.conv("fc1", g.mean("avgpool", in), window{out: narrow, bias: true})
	x = g.conv("fc2", between(activation, "activation", x), window{out: g.shape(in)[0], bias: true})
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
