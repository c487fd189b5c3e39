package zoo

import (
	"slices"

	"carma/configs/models"
)

// linear adds a fully connected layer over the last dimension, with an adapter if
// one was asked for by name.
func (g *graph) linear(name string, in int, out int64, bias bool) int {
	if g.targeted(name) {
		return g.adapter(name, in, out, bias)
	}
	return g.plain(name, in, out, bias)
}

// plain adds a fully connected layer without an adapter.
func (g *graph) plain(name string, in int, out int64, bias bool) int {
	before := g.shape(in)
	last := len(before) - 1
	l := models.Layer{
		Name: name, Type: models.Linear, Inputs: g.places([]int{in}), Out: g.sizes(before[:last], out), Whole: g.whole(in),
	}
	if bias {
		l.Params = g.sizes(nil, before[last]*out, out)
	} else {
		l.Params = g.sizes(nil, before[last]*out)
	}
	return g.add(l)
}

// tied adds a linear layer that shares its weight with the table of tokens. A
// bias is its own; then it counts as the layer's only parameters.
func (g *graph) tied(name string, in int, out int64, bias bool) int {
	i := g.plain(name, in, out, bias)
	if bias {
		g.layers[i].Params = []int64{out}
	} else {
		g.layers[i].Tied = true
	}
	return i
}

func (g *graph) layerNorm(name string, in int) int {
	n := g.last(in)
	return g.add(models.Layer{
		Name: name, Type: models.LayerNorm, Inputs: []int{in}, Out: slices.Clone(g.shape(in)), Params: []int64{n, n},
		Whole: g.whole(in),
	})
}

func (g *graph) embedding(name string, ids int, rows, width int64) int {
	return g.add(models.Layer{
		Name: name, Type: models.Embedding, Inputs: []int{ids}, Out: append(slices.Clone(g.shape(ids)), width),
		Params: []int64{rows * width},
	})
}

// positions looks up a table of positions, once for the whole batch.
func (g *graph) positions(name string, rows, sequence, width int64) int {
	return g.add(models.Layer{
		Name: name, Type: models.Embedding, Inputs: []int{data}, Out: []int64{sequence, width},
		Params: []int64{rows * width}, Whole: true, Keeps: &models.Keeps{Whole: 8 * sequence},
	})
}

// table adds a parameter that operations use directly.
func (g *graph) table(name string, shape ...int64) int {
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	return g.add(models.Layer{
		Name: name, Type: models.OtherLayer, Inputs: []int{data}, Out: shape, Params: []int64{n}, Whole: true,
		Keeps: &models.Keeps{},
	})
}

// attend adds fused attention. The output has the query's length, and heads times
// the value's width.
func (g *graph) attend(name string, q, k, v int, heads int64) int {
	return g.add(models.Layer{
		Name: name, Type: models.Attention, Inputs: []int{q, k, v}, Out: slices.Clone(g.shape(q)), Heads: heads,
	})
}

// singleAttention adds attention in single operations: the products take copies of
// query, key and value with the heads one after the other, and keep them.
func (g *graph) singleAttention(q, k, v int, heads int64) int {
	n, m := g.shape(q)[0], g.shape(k)[0]
	wide, narrow := g.shape(q)[1], g.shape(v)[1]
	q, k = g.copyOf("q.contiguous", q, n, wide), g.copyOf("k.contiguous", k, m, wide)
	a := g.op(models.MatMul, "scores", []int64{heads, n, m}, q, k)
	a = g.copyOf("mask.add", g.copyOf("where", a, heads, n, m), heads, n, m)
	a = g.unary(models.Softmax, "softmax", a)
	a = g.op(models.MatMul, "weighted", []int64{heads, n, narrow / heads}, a, g.copyOf("v.contiguous", v, m, narrow))
	return g.copyOf("transpose", a, n, narrow)
}

// cache marks outputs that a language model returns for its cache. Those of views are
// the tensors behind them.
func (g *graph) cache(layers ...int) {
	for _, i := range layers {
		if i >= 0 {
			g.layers[i].Cached = true
		}
	}
}

// threeWay splits the output of a joint projection into query, key and value.
// They are views of it.
func (g *graph) threeWay(in int, width int64) (q, k, v int) {
	shape := slices.Clone(g.shape(in))
	shape[len(shape)-1] = width
	return g.view("query", in, shape...), g.view("key", in, shape...), g.view("value", in, shape...)
}

// text declares token ids, and a label for each.
func (g *graph) text(s settings) {
	g.input(8, s.sequence)
	g.input(8, s.sequence)
}

// nextToken ends a causal language model. It copies the logits of all tokens but
// the last, and the labels of all but the first.
func (g *graph) nextToken(logits int) {
	s := g.shape(logits)
	if s[0] < 2 {
		g.fail("a sequence of %d token has no next one to learn", s[0])
		return
	}
	shifted := g.copyOf("shift_logits", logits, s[0]-1, s[1])
	g.crossEntropy("loss", shifted, second)
}
