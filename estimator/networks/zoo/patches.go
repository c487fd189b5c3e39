package zoo

import "carma/configs/models"

// PatchBias is a learned number for each head and each distance between patches, and
// for the pairs with the first token. It is added to the scores of the attention (BEiT,
// arXiv 2106.08254; BeitRelativePositionBias of the transformers library).
type PatchBias struct {
	Own  int64 // patches on a side of the model's own images, which the table is for
	Side int64 // and of the images of the training
}

// scores is the bias of each pair of tokens. The table is always interpolated.
func (b *PatchBias) scores(g *graph, heads int64) int {
	defer g.module("relative_position_bias")()
	square := func(side int64) int64 { return (2*side - 1) * (2*side - 1) }
	const firstToken = 3 // from it, to it, and with itself
	table := g.table("table", square(b.Own)+firstToken, heads)
	table = g.copyOf("interpolated", table, square(b.Side)+firstToken, heads)
	n := b.Side*b.Side + 1
	return g.copyOf("scores", table, heads, n, n)
}

// turnPatches turns queries or keys by the positions of their patches. The first tokens
// stay. Under autocast the factors have 32 bits, and so has the result.
func (d *Block) turnPatches(g *graph, name string, in int) int {
	defer g.module("rotary_" + name)()
	n, width := g.shape(in)[0], g.last(in)
	factors := g.op(models.Copy, "factors", []int64{n - d.Prefix, d.Key}, data)
	g.layers[factors].Whole = true
	first, x := g.view("first", in, d.Prefix, width), g.view("patches", in, n-d.Prefix, width)
	part := func(name string, x int) int {
		return g.keeping(g.op(models.Mul, name, g.shape(x), x, factors), models.Keeps{Inputs: []int{1}})
	}
	turned := g.unary(models.Concat, "rotate_half", x)
	x = g.plus("add", part("cos", x), part("sin", turned))
	return g.op(models.Concat, "concat", []int64{n, width}, first, x)
}
