package summary

import (
	"slices"

	"carma/configs/models"
)

// convolution infers what a summary does not tell about a convolution. It uses
// the parameters, and the channels of the layer before or of an earlier one.
func (a *assembly) convolution(l *models.Layer, r *row) {
	dims := len(l.Out) - 1
	if dims < 1 || dims > 3 {
		return
	}
	params := l.Parameters()
	from := a.find(r.in)
	in := a.last()
	if r.in != nil {
		in = r.in
	} else {
		from = nil
	}
	transposed := l.Type == models.ConvTranspose
	if l.Stride == 0 && !transposed {
		l.Stride = strideOf(in, l.Out)
	}
	if r.kernel != nil && r.tensors != nil || params == 0 {
		return
	}
	f, ok := fits(in, l.Out, 1, params)
	if !ok {
		f, ok = fits(in, l.Out, depthwise, params)
	}
	if !ok && r.in == nil {
		if f, from, ok = a.earlier(l.Out, params); ok && !transposed {
			l.Stride = strideOf(a.c.Layers[from[0]].Out, l.Out)
		}
	}
	for _, groups := range []int64{2, 4, 8, 16, 32, 64, 3, 6, 12} {
		if !ok {
			f, ok = fits(in, l.Out, groups, params)
		}
	}
	if !ok {
		if l.Kernel == nil {
			a.guessed++
		}
		return
	}
	l.Inputs = from
	if l.Kernel == nil {
		l.Kernel = f.kernel
	}
	if l.Groups = f.groups; f.groups == 1 {
		l.Groups = 0
	}
	if f.bias {
		l.Params = []int64{params - l.Out[0], l.Out[0]}
	}
}

// fits tells whether a convolution between two shapes can have so many
// parameters.
func fits(in, out []int64, groups, params int64) (filter, bool) {
	if len(in) != len(out) {
		return filter{}, false
	}
	f, ok := convolution(in[0], out[0], groups, params, len(out)-1)
	if k := at(f.kernel, 0); ok && k%2 == 0 && (groups == depthwise || k > 4) && in[1] != models.Times(k, out[1]) {
		return filter{}, false // only convolutions that cut an image into patches have even kernels
	}
	return f, ok
}

// earlier finds the layer at which a branch starts.
func (a *assembly) earlier(out []int64, params int64) (filter, []int, bool) {
	for i := len(a.c.Layers) - 2; i >= 0 && i > len(a.c.Layers)-lookBack; i-- {
		in := a.c.Layers[i].Out
		if len(in) != len(out) || in[len(in)-1] < out[len(out)-1] {
			continue
		}
		if f, ok := fits(in, out, 1, params); ok {
			return f, []int{i}, true
		}
	}
	return filter{}, nil, false
}

// linear infers what a summary does not tell about a linear layer. It also finds
// the attention between the projections of queries, keys and values and the
// output projection.
func (a *assembly) linear(l *models.Layer, r *row) {
	if len(l.Out) == 0 {
		return
	}
	out, params := l.Out[len(l.Out)-1], l.Parameters()
	in, bias := r.features, params%out == 0 && params/out == r.features+1
	if in == 0 {
		in, bias = linear(out, params, a.last())
	}
	if in < 1 {
		return
	}
	if len(l.Params) == 1 && bias && params > out {
		l.Params = []int64{params - out, out}
	}
	n := len(a.c.Layers)
	if n > 0 && a.c.Layers[n-1].Type == models.Linear && len(l.Out) == 2 && l.Out[0] > 1 && len(a.c.Layers[n-1].Out) == 2 {
		if a.projections(in) {
			return
		}
		// Two linear layers in a row are unusual: both take the same input.
		before := a.c.Layers[n-1]
		if a.run(in) > 0 {
			l.Inputs = before.Inputs
			if l.Inputs == nil {
				l.Inputs = []int{n - 2}
			}
			return
		}
	}
	if takes(a.last(), in) || r.in != nil {
		return
	}
	for i := n - 2; i >= 0 && i > n-lookBack; i-- {
		if takes(a.c.Layers[i].Out, in) {
			l.Inputs = []int{i}
			return
		}
	}
	for i := range a.c.Inputs {
		if takes(a.c.Inputs[i].Shape, in) {
			l.Inputs = []int{-1 - i}
			return
		}
	}
}

// inputOf is the shape of the first input of layer i.
func (a *assembly) inputOf(i int) []int64 {
	from := i - 1
	if len(a.c.Layers[i].Inputs) > 0 {
		from = a.c.Layers[i].Inputs[0]
	}
	if from >= 0 {
		return a.c.Layers[from].Out
	}
	if at := -1 - from; at < len(a.c.Inputs) {
		return a.c.Inputs[at].Shape
	}
	return nil
}

// run counts the latest linear layers in a row that take so many features.
func (a *assembly) run(features int64) int {
	n := 0
	for i := len(a.c.Layers) - 1; i >= 0 && n < 3 && a.c.Layers[i].Type == models.Linear && len(a.c.Layers[i].Out) == 2 && takes(a.inputOf(i), features); i-- {
		n++
	}
	return n
}

// projections adds attention if a layer of this width follows three projections,
// or one of three times the width.
func (a *assembly) projections(width int64) bool {
	n := len(a.c.Layers)
	last := &a.c.Layers[n-1]
	if last.Type != models.Linear || len(last.Out) != 2 {
		return false
	}
	var from []int
	switch {
	case last.Out[1] == 3*width:
		from = []int{n - 1}
	case a.run(width) == 3 && a.c.Layers[n-3].Out[1] == width:
		from = []int{n - 3, n - 2, n - 1}
	default:
		return false
	}
	heads := width / 64
	if width%64 != 0 || heads < 1 {
		heads = 1
	}
	a.hidden++
	a.c.Layers = append(a.c.Layers, models.Layer{Name: last.Name + ".attention", Type: models.Attention, Inputs: from, Out: []int64{last.Out[0], width}, Heads: heads})
	return true
}

// attention splits the parameters of a module into its four projections.
func (a *assembly) attention(l *models.Layer) {
	if len(l.Out) == 0 || len(l.Params) != 1 {
		return
	}
	e := l.Out[len(l.Out)-1]
	if e < 1<<20 && l.Params[0] == 4*e*e+4*e {
		l.Params = []int64{3 * e * e, 3 * e, e * e, e}
	}
	if l.Heads == 0 && e%64 == 0 {
		l.Heads = e / 64
	}
}

// embedding sets the input of an embedding: the model's tokens, not the layer
// before.
func (a *assembly) embedding(l *models.Layer) {
	if len(l.Out) == 0 || len(a.c.Layers) == 0 {
		return
	}
	tokens := l.Out[:len(l.Out)-1]
	if l.Type == models.EmbeddingBag || l.Whole {
		tokens = []int64{1}
	}
	for i := range a.c.Inputs {
		if a.c.Inputs[i].Bytes == 8 && (l.Whole || slices.Equal(a.c.Inputs[i].Shape, tokens)) && l.Type == models.Embedding {
			l.Inputs = []int{-1 - i}
			return
		}
	}
	if len(a.c.Inputs) < models.MaxList {
		a.c.Inputs = append(a.c.Inputs, models.Input{Shape: slices.Clone(tokens), Bytes: 8})
		l.Inputs = []int{-len(a.c.Inputs)}
	}
}
