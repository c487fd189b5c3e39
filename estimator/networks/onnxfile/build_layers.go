package onnxfile

import (
	"slices"
	"strings"

	"carma/configs/models"
)

func (b *builder) convolution(c *call) {
	weight := &b.values[c.in[1]]
	l := models.Layer{
		Type: models.Convolution, Kernel: slices.Clone(weight.shape[2:]), Stride: b.stride(c), Inputs: b.sources(c.in[:1]),
	}
	if c.op == "ConvTranspose" {
		l.Type = models.ConvTranspose
	}
	if g := c.num("group", 1); g > 1 {
		l.Groups = g
	}
	b.convs++
	sure, maybe := b.folded(c)
	if sure {
		b.folds++
	}
	if maybe {
		b.bare++
	}
	if weight.batched {
		l.Inputs = b.sources(c.in[:2])
	}
	b.params(&l, c.in[1:]...)
	b.add(c, 0, l)
}

// folded tells whether the exporter seems to have folded a batch norm into a
// convolution. sure: its bias is not named like its module's. maybe: it has no
// bias; a bias of zeros may have been dropped.
func (b *builder) folded(c *call) (sure, maybe bool) {
	module := b.moduleOf(c.in[1])
	if next := b.next(c); next != nil && next.op == "BatchNormalization" {
		return false, false
	}
	if len(c.in) < 3 || c.in[2] < 0 {
		return false, true
	}
	return module == "" || b.values[c.in[2]].name != module+".bias", false
}

func (b *builder) stride(c *call) int64 {
	if a := c.attr("strides"); a != nil && len(a.ints) > 0 {
		return max(1, a.ints[len(a.ints)-1])
	}
	return 1
}

func (b *builder) pool(c *call) {
	l := models.Layer{Type: models.MaxPool, Stride: b.stride(c), Inputs: b.sources(c.in[:1])}
	if c.op == "AveragePool" {
		l.Type = models.AvgPool
	}
	if a := c.attr("kernel_shape"); a != nil {
		l.Kernel = slices.Clone(a.ints)
	}
	b.add(c, 0, l)
	if len(c.out) > 1 && c.out[1] >= 0 && len(b.values[c.out[1]].uses) > 0 {
		b.add(c, 1, models.Layer{Type: models.View, Inputs: []int{len(b.layers) - 1}})
	}
}

// product makes the layer of a matrix product: a linear layer if one of its
// operands is a weight.
func (b *builder) product(c *call) {
	weight := -1
	for i := range min(2, len(c.in)) {
		if v := b.arg(c, i); v != nil && !v.batched && len(v.weights) > 0 {
			weight = i
		}
	}
	if weight < 0 || len(c.in) < 2 || c.op == "Einsum" && len(c.in) > 2 {
		b.add(c, 0, models.Layer{Type: models.MatMul, Inputs: b.sources(c.in)})
		return
	}
	l := models.Layer{Type: models.Linear, Inputs: b.sources(c.in[1-weight : 2-weight])}
	id := c.in[weight]
	if b.head(id) {
		l.Params, l.Tied = []int64{product(b.values[id].shape)}, true
		if bias := b.bias(c); bias >= 0 {
			// The layer's own parameters are only the bias.
			l.Params, l.Tied = nil, false
			b.params(&l, bias)
		}
		b.add(c, 0, l)
		b.through(c)
		return
	}
	ids := []int32{id}
	if c.op == "Gemm" && len(c.in) > 2 {
		ids = append(ids, c.in[2])
	} else if bias := b.bias(c); bias >= 0 {
		ids = append(ids, bias)
	}
	b.params(&l, ids...)
	b.add(c, 0, l)
	b.through(c)
}

// head tells whether a product's weight is the table of an earlier embedding.
// PyTorch's older exporter stores a transposed copy of it under a name of its
// own.
func (b *builder) head(id int32) bool {
	v := &b.values[id]
	if len(v.weights) != 1 || v.weights[0] != id || !strings.HasPrefix(v.name, "onnx::") || len(v.shape) != 2 || b.counted[id] {
		return false
	}
	for _, t := range b.tables {
		if t[0] == v.shape[1] && t[1] == v.shape[0] && t[0] > t[1] {
			b.warn("a linear layer of %d x %d is taken as tied to the embedding of that size", t[0], t[1])
			return true
		}
	}
	return false
}

// maxUses is how many operators that use a value are searched for a pattern.
const maxUses = 64

// takers are up to two operators that use the content of a value in a layer. If
// more than maxUses operators use it, one of them is returned twice, so that no
// pattern matches.
func (b *builder) takers(id int32) (calls []*call) {
	uses := b.values[id].uses
	if len(uses) > maxUses {
		return []*call{&b.calls[uses[0]], &b.calls[uses[0]]}
	}
	for _, use := range uses {
		u := &b.calls[use]
		if len(calls) < 2 && !slices.Contains(calls, u) && b.anyBatched(u) && slices.Contains(u.data(), id) {
			calls = append(calls, u)
		}
	}
	return calls
}

// next is the only operator that uses the content of output 0 of c; nil: there
// are several, or it is an output of the model.
func (b *builder) next(c *call) *call {
	if len(c.out) == 0 || b.values[c.out[0]].output {
		return nil
	}
	if calls := b.takers(c.out[0]); len(calls) == 1 {
		return calls[0]
	}
	return nil
}

// bias is the vector that the next operator adds to a product, or -1.
func (b *builder) bias(c *call) int32 {
	add := b.next(c)
	if add == nil || add.op != "Add" || len(add.in) != 2 || c.op == "Gemm" {
		return -1
	}
	other := add.in[0]
	if other == c.out[0] {
		other = add.in[1]
	}
	if other < 0 || other == c.out[0] {
		return -1
	}
	v, out := &b.values[other], b.values[c.out[0]].shape
	if v.batched || len(v.weights) == 0 || len(out) == 0 || product(v.shape) != out[len(out)-1] {
		return -1
	}
	return other
}

// through makes the addition of a bias part of the product's layer.
func (b *builder) through(c *call) {
	if b.bias(c) >= 0 {
		add := b.next(c)
		add.done = true
		if add.out[0] >= 0 {
			b.values[add.out[0]].layer = b.values[c.out[0]].layer
		}
	}
}

// gather makes an embedding if the operator looks up weights, a view if it takes
// one element of a dimension, otherwise a copy.
func (b *builder) gather(c *call) {
	x, index := &b.values[c.in[0]], &b.values[c.in[1]]
	switch {
	case !x.batched && len(x.weights) > 0:
		l := models.Layer{Type: models.Embedding, Inputs: b.sources(c.in[1:2])}
		b.params(&l, c.in[0])
		if len(x.shape) == 2 && len(b.tables) < 64 {
			b.tables = append(b.tables, x.shape)
		}
		b.add(c, 0, l)
	case len(index.shape) == 0 && !index.batched:
		b.views(c)
	default:
		b.add(c, 0, models.Layer{Type: models.Copy, Inputs: b.sources(c.in[:2])})
	}
}

// same makes no layer: the output is the input's.
func (b *builder) same(c *call) {
	if c.out[0] >= 0 {
		from, to := &b.values[c.in[0]], &b.values[c.out[0]]
		to.layer, to.strided, to.loose = from.layer, from.strided, from.loose
	}
}

// views makes a view of the input. A reshape of elements that are not in order
// makes a copy.
func (b *builder) views(c *call) {
	x := &b.values[c.in[0]]
	from := b.sources(c.in[:1])
	for o, id := range c.out {
		if id < 0 {
			continue
		}
		v := &b.values[id]
		l := models.Layer{Type: models.View, Inputs: from}
		v.strided, v.loose = x.strided, x.loose
		switch c.op {
		case "Transpose":
			v.strided = !x.loose && !b.keepsOrder(c, x)
		case "Expand":
			v.strided = product(v.shape) > product(x.shape)
		case "Reshape", "Flatten":
			if v.strided, v.loose = false, false; x.strided {
				l.Type = models.Copy
			}
		}
		b.add(c, o, l)
	}
}

// keepsOrder reports whether a transposition only moves dimensions of 1.
func (b *builder) keepsOrder(c *call, x *value) bool {
	a := c.attr("perm")
	if a == nil {
		return len(x.shape) < 2
	}
	last := int64(-1)
	for _, p := range a.ints {
		if x.shape[p] == 1 && int(p) != x.axis {
			continue
		}
		if p < last {
			return false
		}
		last = p
	}
	return true
}

func (b *builder) sum(c *call) {
	b.add(c, 0, models.Layer{Type: models.Add, Inputs: b.sources(c.in)})
}

// scale makes a product of elements. With a constant it keeps nothing for the
// backward pass. The inverse of its input keeps only its output.
func (b *builder) scale(c *call) {
	l := models.Layer{Type: models.Mul, Inputs: b.sources(c.in)}
	if len(l.Inputs) == 1 && len(c.in) == 2 && c.in[0] != c.in[1] {
		l.Keeps = &models.Keeps{Output: c.op == "Div" && b.values[c.in[1]].batched}
	}
	b.add(c, 0, l)
}
