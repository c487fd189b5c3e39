package summary

import (
	"fmt"
	"slices"

	"carma/configs/models"
)

// row is a module as a summary describes it. Shapes are without the batch.
type row struct {
	name, class string
	in, out     []int64 // in is nil if unknown
	whole       bool    // out does not depend on the batch
	params      int64   // their sum, or
	tensors     []int64 // each tensor
	kernel      []int64
	stride      int64
	groups      int64
	heads       int64
	features    int64 // input features of a linear layer; 0: unknown
	inPlace     bool
	frozen      bool
	tied        bool
}

// assembly builds layers from rows.
type assembly struct {
	c        *models.Config
	sample   []float64 // least and most elements of one sample; nil: unknown
	first    []int64   // shape of the first input; nil: to be guessed
	detector bool
	unknown  map[string]int // unknown classes of modules, with their number
	guessed  int            // layers with a guessed kernel
	hidden   int            // operations between modules, noticed by their effect
}

func (a *assembly) warn(format string, args ...any) {
	a.c.Warnings = append(a.c.Warnings, fmt.Sprintf(format, args...))
}

// last is the output shape of the last layer, or the input's.
func (a *assembly) last() []int64 {
	if n := len(a.c.Layers); n > 0 {
		return a.c.Layers[n-1].Out
	}
	if len(a.c.Inputs) > 0 {
		return a.c.Inputs[0].Shape
	}
	return nil
}

// add makes the layer of a row. A block's own row comes after those of its
// modules. It becomes a layer only if the block did more than its modules.
func (a *assembly) add(r *row) {
	kind, ok := typeOf(r.class)
	a.detector = a.detector || detects(r.class)
	l := models.Layer{
		Name: r.name, Type: kind, Out: r.out, Whole: r.whole, Params: r.tensors, Kernel: r.kernel, Stride: r.stride,
		Groups: r.groups, Heads: r.heads, InPlace: r.inPlace, Frozen: r.frozen, Tied: r.tied,
	}
	if len(a.c.Layers) == 0 && len(a.c.Inputs) == 0 {
		a.input(r, kind)
	}
	if !ok && r.params == 0 && len(r.tensors) == 0 {
		if slices.Equal(r.out, a.last()) {
			return
		}
		a.operation(&l)
	} else if !ok {
		a.unknown[r.class]++
	}
	if r.params > 0 && l.Params == nil {
		l.Params = []int64{r.params}
	}
	switch l.Type {
	case models.Convolution, models.ConvTranspose:
		a.convolution(&l, r)
	case models.Linear:
		a.linear(&l, r)
	case models.BatchNorm, models.LayerNorm, models.GroupNorm, models.InstanceNorm:
		if n := l.Parameters(); len(l.Params) == 1 && n%2 == 0 {
			l.Params = []int64{n / 2, n / 2}
		}
	case models.MaxPool, models.AvgPool:
		if l.Stride == 0 {
			l.Stride = strideOf(a.last(), l.Out)
		}
	case models.Embedding, models.EmbeddingBag:
		a.embedding(&l)
	case models.Attention:
		a.attention(&l)
	case models.Dropout:
		// The dropout of the scores comes between the projections and the output
		// projection, so the attention was just before it.
		if n := len(a.c.Layers); n > 3 && len(l.Out) == 2 && len(a.c.Layers[n-3].Out) == 2 {
			a.projections(a.c.Layers[n-3].Out[1])
		}
	}
	if l.Inputs == nil && r.in != nil {
		l.Inputs = a.find(r.in)
	}
	a.c.Layers = append(a.c.Layers, l)
}

// input adds the model's input, from the first row.
func (a *assembly) input(r *row, kind string) {
	shape, bytes := a.first, 0
	if shape == nil {
		shape = r.in
	}
	if kind == models.Embedding && shape == nil && len(r.out) > 0 {
		shape = r.out[:len(r.out)-1]
	}
	if kind == models.Embedding || kind == models.EmbeddingBag {
		bytes = 8
	}
	if shape == nil && kind == models.Convolution && len(r.out) > 1 && len(r.out) < 5 {
		least, most := 0.0, 0.0
		if a.sample != nil {
			least, most = a.sample[0], a.sample[1]
		}
		if shape = image(r.out, max(r.params, models.Sum(r.tensors)), least, most); shape != nil {
			a.warn("the input is not in the summary: taken as %v", shape)
		}
	}
	if shape == nil && kind == models.Linear && len(r.out) > 0 {
		if in, _ := linear(r.out[len(r.out)-1], r.params, nil); in > 0 {
			shape = append(slices.Clone(r.out[:len(r.out)-1]), in)
		}
	}
	if shape == nil {
		shape = r.out
		a.warn("the input is not in the summary: taken as large as the first output")
	}
	a.c.Inputs = append(a.c.Inputs, models.Input{Shape: slices.Clone(shape), Bytes: bytes})
}

// operation guesses what a block did after its last module.
func (a *assembly) operation(l *models.Layer) {
	last := a.last()
	switch {
	case models.Product(l.Out) == models.Product(last):
		l.Type = models.View
	case len(l.Out) > 1 && len(last) == len(l.Out) && slices.Equal(l.Out[1:], last[1:]) && l.Out[0] > last[0]:
		l.Type = models.Concat
		l.Inputs = a.parts(l.Out)
	case len(l.Out) > 1 && len(last) == len(l.Out) && l.Out[0] == last[0] && models.Product(last) == last[0]:
		// The channels are scaled: squeeze and excitation.
		l.Type = models.Mul
		if from := a.find(l.Out); len(from) == 1 {
			l.Inputs = []int{from[0], len(a.c.Layers) - 1}
		}
	default:
		return
	}
	a.hidden++
}

// parts are the latest outputs whose channels add up to those of a concat. The
// layers of a branch change the number of channels, so a branch ends where the
// next layer does not continue it.
func (a *assembly) parts(out []int64) []int {
	n := len(a.c.Layers)
	if n == 0 {
		return nil
	}
	from, channels := []int{n - 1}, a.c.Layers[n-1].Out[0]
	for i := n - 2; i >= 0 && i > n-200 && channels < out[0]; i-- {
		l := &a.c.Layers[i]
		next := &a.c.Layers[i+1]
		if len(next.Inputs) == 1 && next.Inputs[0] != i && len(l.Out) == len(out) && slices.Equal(l.Out[1:], out[1:]) && channels+l.Out[0] <= out[0] {
			from, channels = append(from, i), channels+l.Out[0]
		}
	}
	if channels != out[0] {
		return nil
	}
	slices.Reverse(from)
	return from
}

// lookBack is how many layers back the input of a layer is searched.
const lookBack = 256

// find returns the inputs of a layer that takes this shape; nil: the layer before
// has that shape, or none was found.
func (a *assembly) find(shape []int64) []int {
	last := a.last()
	if slices.Equal(last, shape) || models.Product(last) == models.Product(shape) {
		return nil
	}
	for i := len(a.c.Layers) - 2; i >= 0 && i > len(a.c.Layers)-lookBack; i-- {
		if slices.Equal(a.c.Layers[i].Out, shape) {
			return []int{i}
		}
	}
	for i := range a.c.Inputs {
		if slices.Equal(a.c.Inputs[i].Shape, shape) {
			return []int{-1 - i}
		}
	}
	return nil
}
