package graph

import (
	"slices"

	"carma/configs/models"
)

// Linear adds a fully connected layer over the last dimension. The layer gets an adapter
// if the user names the layer.
func (g *Graph) Linear(name string, in int, out int64, bias bool) int {
	if g.targeted(name) {
		return g.adapter(name, in, out, bias)
	}
	return g.Plain(name, in, out, bias)
}

// Plain adds a fully connected layer without an adapter.
func (g *Graph) Plain(name string, in int, out int64, bias bool) int {
	before := g.Shape(in)
	last := len(before) - 1
	l := models.Layer{
		Name: name, Type: models.Linear, Inputs: g.places([]int{in}), Out: g.sizes(before[:last], out), Whole: g.whole(in),
	}
	if bias {
		l.Params = g.sizes(nil, before[last]*out, out)
	} else {
		l.Params = g.sizes(nil, before[last]*out)
	}
	return g.Add(l)
}

// Tied adds a linear layer that shares its weight with the token embedding. If it has a
// bias, the bias is the layer's only parameter.
func (g *Graph) Tied(name string, in int, out int64, bias bool) int {
	i := g.Plain(name, in, out, bias)
	if bias {
		g.Layers[i].Params = []int64{out}
	} else {
		g.Layers[i].Tied = true
	}
	return i
}

// LayerNorm adds a layer norm over the last dimension.
func (g *Graph) LayerNorm(name string, in int) int {
	n := g.Last(in)
	return g.Add(models.Layer{
		Name: name, Type: models.LayerNorm, Inputs: []int{in}, Out: slices.Clone(g.Shape(in)), Params: []int64{n, n},
		Whole: g.whole(in),
	})
}

// Embedding looks up ids in a table of rows.
func (g *Graph) Embedding(name string, ids int, rows, width int64) int {
	return g.Add(models.Layer{
		Name: name, Type: models.Embedding, Inputs: []int{ids}, Out: append(slices.Clone(g.Shape(ids)), width),
		Params: []int64{rows * width},
	})
}

// Positions looks up a table of positions, once for the whole batch.
func (g *Graph) Positions(name string, rows, sequence, width int64) int {
	return g.Add(models.Layer{
		Name: name, Type: models.Embedding, Inputs: []int{Data}, Out: []int64{sequence, width},
		Params: []int64{rows * width}, Whole: true, Keeps: &models.Keeps{Whole: 8 * sequence},
	})
}

// Table adds a parameter that operations use directly.
func (g *Graph) Table(name string, shape ...int64) int {
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	return g.Add(models.Layer{
		Name: name, Type: models.OtherLayer, Inputs: []int{Data}, Out: shape, Params: []int64{n}, Whole: true,
		Keeps: &models.Keeps{},
	})
}

// Attend adds fused attention. The output has the query's length, and heads times
// the value's width.
func (g *Graph) Attend(name string, q, k, v int, heads int64) int {
	return g.Add(models.Layer{
		Name: name, Type: models.Attention, Inputs: []int{q, k, v}, Out: slices.Clone(g.Shape(q)), Heads: heads,
	})
}

// ThreeWay splits the output of a joint projection into query, key and value.
// They are views of it.
func (g *Graph) ThreeWay(in int, width int64) (q, k, v int) {
	shape := slices.Clone(g.Shape(in))
	shape[len(shape)-1] = width
	return g.View("query", in, shape...), g.View("key", in, shape...), g.View("value", in, shape...)
}

// Text declares token ids, and a label for each token.
func (g *Graph) Text(s Sizes) {
	g.Input(8, s.Sequence)
	g.Input(8, s.Sequence)
}

// Weighted multiplies by learned numbers. Their gradient needs the input.
func (g *Graph) Weighted(name string, in int, width int64) int {
	i := g.Unary(models.Mul, name, in)
	g.Layers[i].Params = []int64{width}
	g.Layers[i].Frozen = g.Rank > 0
	keeps := models.Keeps{Inputs: []int{0}}
	if g.Rank > 0 {
		keeps.Inputs = nil
	}
	return g.Keeping(i, keeps)
}

// Biased adds a learned vector to the queries.
func (g *Graph) Biased(name string, in int) int {
	i := g.Unary(models.Add, name, in)
	g.Layers[i].Params = []int64{g.Last(in)}
	g.Layers[i].Frozen = g.Rank > 0
	return i
}
