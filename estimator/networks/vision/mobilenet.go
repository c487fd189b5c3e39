package vision

import (
	"fmt"

	"carma/configs/models"
	"carma/estimator/networks/graph"
)

// MobileNets returns the networks of Sandler et al. 2018 and Howard et al. 2019.
func MobileNets() graph.Group {
	return graph.Group{Name: "mobilenet", Description: "inverted residuals for small devices (MobileNet)", Entries: []graph.Network{
		graph.Classifier("mobilenet_v2", "classifier.1", mobileNetV2).Called("mobilenet"),
		graph.Classifier("mobilenet_v3_small", "classifier.3", mobileNetV3(mobileSmall, 1024)),
		graph.Classifier("mobilenet_v3_large", "classifier.3", mobileNetV3(mobileLarge, 1280)),
	}}
}

// inverted is an inverted residual: channels are widened, processed by a depthwise
// convolution of kernel pixels, and narrowed. Its layers' names begin with prefix.
type inverted struct {
	prefix                    string
	wide, out, kernel, stride int64
	activation                string
	squeeze                   func(in int) int                 // after the convolution, or nil if there is none
	add                       func(name string, x, in int) int // the input, if it has the output's shape
}

func (b inverted) build(g *graph.Graph, name string, in int) int {
	defer g.StartBlock(name)()
	x, from := in, g.Shape(in)[0]
	if b.wide != from {
		x = activated(g, b.prefix+"expand", x, graph.Window{Out: b.wide}, b.activation)
	}
	x = activated(g, b.prefix+"depthwise", x, graph.Window{Out: b.wide, Kernel: b.kernel, Pad: b.kernel / 2, Stride: b.stride, Groups: b.wide}, b.activation)
	if b.squeeze != nil {
		x = b.squeeze(x)
	}
	x = activated(g, b.prefix+"project", x, graph.Window{Out: b.out}, "")
	if b.stride == 1 && from == b.out {
		return b.add("add", x, in)
	}
	return x
}

// only returns the stride of block i of several blocks, if only the first block has a
// stride.
func only(stride int64, i int) int64 {
	if i > 0 {
		return 1
	}
	return stride
}

func mobileNetV2(g *graph.Graph) int {
	x := activated(g, "features.0", graph.Data, graph.Window{Out: 32, Kernel: 3, Stride: 2, Pad: 1}, models.ReLU6)
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
				prefix: "conv.", wide: r.expand * g.Shape(x)[0], out: r.out, kernel: 3, stride: only(r.stride, i), activation: models.ReLU6,
				add: func(name string, x, in int) int { return g.Plus(name, in, x) },
			}.build(g, fmt.Sprintf("features.%d", number), x)
		}
	}
	x = activated(g, fmt.Sprintf("features.%d", number+1), x, graph.Window{Out: 1280}, models.ReLU6)
	return g.Drop("classifier.0", g.Flatten(g.Mean("avgpool", x)))
}

// activated adds a convolution, its batch norm and an activation in place. ReLU6 is added
// as not in place: its gradient needs its input, so in place it would keep a copy, which
// is the same memory. ReLU needs only its output.
func activated(g *graph.Graph, name string, in int, w graph.Window, activation string) int {
	x := g.ConvNorm(name+".0", name+".1", in, w)
	switch activation {
	case "":
		return x
	case models.ReLU6:
		return g.Unary(activation, name+".2", x)
	}
	return g.InPlace(activation, name+".2", x)
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

func mobileNetV3(rows []mobileRow, last int64) func(*graph.Graph) int {
	return func(g *graph.Graph) int {
		features := mobileFeatures(g, rows)
		x := g.Flatten(g.Mean("avgpool", features[len(features)-1]))
		x = g.InPlace(models.HardSwish, "classifier.1", g.Linear("classifier.0", x, last, true))
		return g.DropInPlace("classifier.2", x)
	}
}

// mobileFeatures builds the convolutions of a MobileNetV3 and returns the output of each.
func mobileFeatures(g *graph.Graph, rows []mobileRow) []int {
	x := activated(g, "features.0", graph.Data, graph.Window{Out: 16, Kernel: 3, Stride: 2, Pad: 1}, models.HardSwish)
	features := []int{x}
	for i, r := range rows {
		x = mobileBlock(g, fmt.Sprintf("features.%d", i+1), x, r)
		features = append(features, x)
	}
	x = activated(g, fmt.Sprintf("features.%d", len(rows)+1), x, graph.Window{Out: 6 * g.Shape(x)[0]}, models.HardSwish)
	return append(features, x)
}

func mobileBlock(g *graph.Graph, name string, in int, r mobileRow) int {
	b := inverted{prefix: "block.", wide: r.wide, out: r.out, kernel: r.kernel, stride: r.stride, activation: models.ReLU, add: g.PlusInPlace}
	if r.swish {
		b.activation = models.HardSwish
	}
	if r.squeeze {
		b.squeeze = func(x int) int {
			return squeeze(g, "block.se", x, divisible(float64(r.wide/4)), g.Unary, models.ReLU, models.HardSigmoid)
		}
	}
	return b.build(g, name, in)
}

// squeeze scales the channels by factors that two small convolutions compute from
// their means. between adds the activation between them.
func squeeze(g *graph.Graph, name string, in int, narrow int64, between func(kind, name string, in int) int, activation, gate string) int {
	defer g.Module(name)()
	x := g.Conv("fc1", g.Mean("avgpool", in), graph.Window{Out: narrow, Bias: true})
	x = g.Conv("fc2", between(activation, "activation", x), graph.Window{Out: g.Shape(in)[0], Bias: true})
	return g.Times("mul", in, g.Unary(gate, "scale_activation", x))
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
