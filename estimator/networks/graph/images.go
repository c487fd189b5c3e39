package graph

import (
	"slices"

	"carma/configs/models"
)

// Window describes a convolution or a pool. Its zero value has a kernel of 1, a width equal
// to the height, stride 1, no padding and one group.
type Window struct {
	Out           int64 // channels
	Kernel, Width int64
	Stride        int64
	Pad, PadWidth int64
	Groups        int64
	Bias          bool
}

func (w Window) filled() Window {
	if w.Kernel == 0 {
		w.Kernel = 1
	}
	if w.Width == 0 {
		w.Width, w.PadWidth = w.Kernel, w.Pad
	}
	w.Stride, w.Groups = max(w.Stride, 1), max(w.Groups, 1)
	return w
}

// slide returns the output size for an input size.
func (w Window) slide(size, kernel, pad int64) int64 {
	room := size + 2*pad - kernel
	if room < 0 {
		return 0
	}
	return room/w.Stride + 1
}

func (g *Graph) windowed(kind, name string, in int, w Window, out int64) models.Layer {
	s := g.Shape(in)
	h, v := w.slide(s[1], w.Kernel, w.Pad), w.slide(s[2], w.Width, w.PadWidth)
	if h < 1 || v < 1 {
		g.Fail("the image is too small: %s gets %d x %d pixels", g.path(name), s[1], s[2])
	}
	return models.Layer{
		Name: name, Type: kind, Inputs: []int{in}, Out: []int64{out, max(h, 1), max(v, 1)},
		Kernel: []int64{w.Kernel, w.Width}, Stride: w.Stride,
	}
}

// Conv adds a convolution.
func (g *Graph) Conv(name string, in int, w Window) int {
	w = w.filled()
	l := g.windowed(models.Convolution, name, in, w, w.Out)
	l.Groups = w.Groups
	l.Params = []int64{g.Shape(in)[0] / w.Groups * w.Out * w.Kernel * w.Width}
	if w.Bias {
		l.Params = append(l.Params, w.Out)
	}
	return g.Add(l)
}

// MaxPool adds a pool of maxima.
func (g *Graph) MaxPool(name string, in int, w Window) int {
	return g.Add(g.windowed(models.MaxPool, name, in, w.filled(), g.Shape(in)[0]))
}

// AvgPool adds a pool of means.
func (g *Graph) AvgPool(name string, in int, w Window) int {
	return g.Add(g.windowed(models.AvgPool, name, in, w.filled(), g.Shape(in)[0]))
}

// Mean averages each channel of an image over its pixels.
func (g *Graph) Mean(name string, in int) int {
	return g.Op(models.Mean, name, []int64{g.Shape(in)[0], 1, 1}, in)
}

// BatchNorm adds a batch norm, or a fixed batch norm if g.Fixed is set.
func (g *Graph) BatchNorm(name string, in int) int {
	c := g.Shape(in)[0]
	if g.Fixed {
		return g.fixedNorm(name, in)
	}
	return g.Add(models.Layer{
		Name: name, Type: models.BatchNorm, Inputs: []int{in}, Out: slices.Clone(g.Shape(in)), Params: []int64{c, c},
	})
}

// fixedNorm adds a batch norm that is not trained (torchvision's FrozenBatchNorm2d). It
// multiplies each channel by a 32-bit number and adds another one. These numbers are not
// parameters. The result has 32 bits under autocast too.
func (g *Graph) fixedNorm(name string, in int) int {
	factors := g.Add(models.Layer{Name: name + ".scale", Type: models.OtherLayer, Inputs: []int{Data}, Out: []int64{g.Shape(in)[0]}, Whole: true})
	x := g.Keeping(g.Op(models.Mul, name+".mul", g.Shape(in), in, factors), models.Keeps{Inputs: []int{1}})
	return g.Plus(name+".add", x, factors)
}

// ConvNorm adds a convolution and its batch norm.
func (g *Graph) ConvNorm(conv, norm string, in int, w Window) int {
	return g.BatchNorm(norm, g.Conv(conv, in, w))
}

// Upsample doubles both sides by repeating pixels.
func (g *Graph) Upsample(name string, in int) int {
	s := g.Shape(in)
	return g.Op(models.Upsample, name, []int64{s[0], 2 * s[1], 2 * s[2]}, in)
}

// Photo declares the inputs of an image classifier.
func (g *Graph) Photo(channels int64, s Sizes) {
	g.Input(0, channels, s.Image, s.Image)
	g.Input(8, 1)
}

// NewClasses ends a network with a new head, which is trained in addition to adapters.
func (g *Graph) NewClasses(name string, vector int, s Sizes) {
	g.Trained(func() { g.Classify(g.Plain(name, vector, s.Classes, true)) })
}

// Classify ends an image classifier with its loss.
func (g *Graph) Classify(logits int) { g.CrossEntropy("loss", logits, Second) }

// ImageNet has the image size and the number of classes of ImageNet.
var ImageNet = Sizes{Image: 224, Classes: 1000}

// Classifier returns a network that computes a vector for each image with the function
// vector. The layer named last computes the scores of the classes from the vector.
func Classifier(name, last string, vector func(g *Graph) int) Network {
	return Network{Name: name, Kind: models.Conv, Batch: 32, Size: ImageNet, Build: func(g *Graph, s Sizes) {
		g.Photo(3, s)
		g.Classify(g.Linear(last, vector(g), s.Classes, true))
	}}
}

// ChannelsLast permutes the dimensions of an image, as a view.
func (g *Graph) ChannelsLast(in int) int {
	s := g.Shape(in)
	return g.View("permute", in, s[1], s[2], s[0])
}

// ChannelsFirst reverses [Graph.ChannelsLast].
func (g *Graph) ChannelsFirst(in int) int {
	s := g.Shape(in)
	return g.View("permute", in, s[2], s[0], s[1])
}

// LayerNorm2d adds a layer norm over the channels of an image.
func (g *Graph) LayerNorm2d(name string, in int) int {
	return g.ChannelsFirst(g.LayerNorm(name, g.ChannelsLast(in)))
}

// GroupNorm adds a norm of groups of channels.
func (g *Graph) GroupNorm(name string, in int) int {
	n := g.Shape(in)[0]
	return g.Add(models.Layer{Name: name, Type: models.GroupNorm, Inputs: []int{in}, Out: slices.Clone(g.Shape(in)), Params: []int64{n, n}})
}

// W1 returns a convolution with a kernel of 1 x 1.
func W1(out int64) Window { return Window{Out: out} }

// W3 returns a convolution with a kernel of 3 x 3 that keeps the image's size.
func W3(out int64) Window { return Window{Out: out, Kernel: 3, Pad: 1} }

// W3Biased returns W3 with a bias.
func W3Biased(out int64) Window { return Window{Out: out, Kernel: 3, Pad: 1, Bias: true} }
