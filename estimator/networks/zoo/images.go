package zoo

import (
	"slices"

	"carma/configs/models"
)

// window is a convolution or a pool. Zero values mean: a kernel of 1, width equal
// to height, stride 1, no padding, one group.
type window struct {
	out           int64 // channels
	kernel, width int64
	stride        int64
	pad, padWidth int64
	groups        int64
	bias          bool
}

func (w window) filled() window {
	if w.kernel == 0 {
		w.kernel = 1
	}
	if w.width == 0 {
		w.width, w.padWidth = w.kernel, w.pad
	}
	w.stride, w.groups = max(w.stride, 1), max(w.groups, 1)
	return w
}

// slide returns the output size for an input size.
func (w window) slide(size, kernel, pad int64) int64 {
	room := size + 2*pad - kernel
	if room < 0 {
		return 0
	}
	return room/w.stride + 1
}

func (g *graph) windowed(kind, name string, in int, w window, out int64) models.Layer {
	s := g.shape(in)
	h, v := w.slide(s[1], w.kernel, w.pad), w.slide(s[2], w.width, w.padWidth)
	if h < 1 || v < 1 {
		g.fail("the image is too small: %s gets %d x %d pixels", g.path(name), s[1], s[2])
	}
	return models.Layer{
		Name: name, Type: kind, Inputs: []int{in}, Out: []int64{out, max(h, 1), max(v, 1)},
		Kernel: []int64{w.kernel, w.width}, Stride: w.stride,
	}
}

func (g *graph) conv(name string, in int, w window) int {
	w = w.filled()
	l := g.windowed(models.Convolution, name, in, w, w.out)
	l.Groups = w.groups
	l.Params = []int64{g.shape(in)[0] / w.groups * w.out * w.kernel * w.width}
	if w.bias {
		l.Params = append(l.Params, w.out)
	}
	return g.add(l)
}

func (g *graph) maxPool(name string, in int, w window) int {
	return g.add(g.windowed(models.MaxPool, name, in, w.filled(), g.shape(in)[0]))
}

func (g *graph) avgPool(name string, in int, w window) int {
	return g.add(g.windowed(models.AvgPool, name, in, w.filled(), g.shape(in)[0]))
}

// mean averages each channel of an image over its pixels.
func (g *graph) mean(name string, in int) int {
	return g.op(models.Mean, name, []int64{g.shape(in)[0], 1, 1}, in)
}

// adaptive pools to size x size pixels. It repeats pixels of smaller images.
func (g *graph) adaptive(name string, in int, size int64) int {
	s := g.shape(in)
	return g.add(models.Layer{
		Name: name, Type: models.AvgPool, Inputs: []int{in}, Out: []int64{s[0], size, size},
		Kernel: []int64{max(s[1]/size, 1), max(s[2]/size, 1)}, Stride: max(s[1]/size, 1),
	})
}

func (g *graph) batchNorm(name string, in int) int {
	c := g.shape(in)[0]
	if g.fixed {
		return g.fixedNorm(name, in)
	}
	return g.add(models.Layer{
		Name: name, Type: models.BatchNorm, Inputs: []int{in}, Out: slices.Clone(g.shape(in)), Params: []int64{c, c},
	})
}

// fixedNorm is a batch norm that is not trained (torchvision's FrozenBatchNorm2d): each
// channel is multiplied by a number of 32 bits, and one is added. Its numbers are no
// parameters. The result has 32 bits under autocast too.
func (g *graph) fixedNorm(name string, in int) int {
	factors := g.add(models.Layer{Name: name + ".scale", Type: models.OtherLayer, Inputs: []int{data}, Out: []int64{g.shape(in)[0]}, Whole: true})
	x := g.keeping(g.op(models.Mul, name+".mul", g.shape(in), in, factors), models.Keeps{Inputs: []int{1}})
	return g.plus(name+".add", x, factors)
}

// convNorm adds a convolution and its batch norm.
func (g *graph) convNorm(conv, norm string, in int, w window) int {
	return g.batchNorm(norm, g.conv(conv, in, w))
}

// upsample doubles both sides by repeating pixels.
func (g *graph) upsample(name string, in int) int {
	s := g.shape(in)
	return g.op(models.Upsample, name, []int64{s[0], 2 * s[1], 2 * s[2]}, in)
}

// photo declares the inputs of an image classifier.
func (g *graph) photo(channels int64, s settings) {
	g.input(0, channels, s.image, s.image)
	g.input(8, 1)
}

// newClasses ends a network with a new head, which is trained beside adapters too.
func (g *graph) newClasses(name string, vector int, s settings) {
	g.trained(func() { g.classify(g.plain(name, vector, s.classes, true)) })
}

// classify ends an image classifier with its loss.
func (g *graph) classify(logits int) { g.crossEntropy("loss", logits, second) }

var imageNet = settings{image: 224, classes: 1000}

// classifier is a network that makes a vector of each photo; the layer named last makes
// scores of the classes of it.
func classifier(name, last string, vector func(g *graph) int) entry {
	return entry{name: name, kind: models.Conv, batch: 32, size: imageNet, build: func(g *graph, s settings) {
		g.photo(3, s)
		g.classify(g.linear(last, vector(g), s.classes, true))
	}}
}

// called adds other names.
func (e entry) called(aliases ...string) entry {
	e.aliases = aliases
	return e
}
