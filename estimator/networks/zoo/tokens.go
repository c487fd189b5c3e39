package zoo

import (
	"slices"

	"carma/configs/models"
)

// linear adds a fully connected layer over the last dimension.
func (g *graph) linear(name string, in int, out int64, bias bool) int {
	shape := slices.Clone(g.shape(in))
	from := shape[len(shape)-1]
	shape[len(shape)-1] = out
	l := models.Layer{
		Name: name, Type: models.Linear, Inputs: []int{in}, Out: shape, Params: []int64{from * out}, Whole: g.whole(in),
	}
	if bias {
		l.Params = append(l.Params, out)
	}
	return g.add(l)
}

// adapted adds a linear layer and, with LoRA, its adapter: two small linear
// layers whose scaled output is added.
func (g *graph) adapted(name string, in int, out int64, bias bool) int {
	base := g.linear(name, in, out, bias)
	if g.rank == 0 {
		return base
	}
	defer g.module(name)()
	rank := g.rank
	g.rank = 0 // the adapter is trained
	down := g.linear("lora_A", in, rank, false)
	up := g.linear("lora_B", down, out, false)
	g.rank = rank
	g.adapts++
	return g.plus("lora_add", base, g.scale("lora_scale", up))
}

// tied adds the linear layer whose weight is the table of tokens; a bias is
// its own, and then the only parameters counted here.
func (g *graph) tied(name string, in int, out int64, bias bool) int {
	i := g.linear(name, in, out, bias)
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

// table is a parameter that operations take as it is.
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

// attend adds fused attention: the output has the query's length and heads x
// the value's width.
func (g *graph) attend(name string, q, k, v int, heads int64) int {
	return g.add(models.Layer{
		Name: name, Type: models.Attention, Inputs: []int{q, k, v}, Out: slices.Clone(g.shape(q)), Heads: heads,
	})
}

// threeWay cuts the output of a joint projection into query, key and value,
// which stay in its storage.
func (g *graph) threeWay(in int, width int64) (q, k, v int) {
	shape := slices.Clone(g.shape(in))
	shape[len(shape)-1] = width
	return g.view("query", in, shape...), g.view("key", in, shape...), g.view("value", in, shape...)
}

// text declares token ids and labels for each of them.
func (g *graph) text(s settings) {
	g.input(8, s.sequence)
	g.input(8, s.sequence)
}

// nextToken ends a causal language model: the logits of all tokens but the
// last are copied, as are the labels of all but the first.
func (g *graph) nextToken(logits int) {
	s := g.shape(logits)
	if s[0] < 2 {
		g.fail("a sequence of %d token has no next one to learn", s[0])
		return
	}
	shifted := g.copyOf("shift_logits", logits, s[0]-1, s[1])
	g.crossEntropy("loss", shifted, second)
}
