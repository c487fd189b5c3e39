package transformer

import (
	"carma/configs/models"
	"carma/estimator/networks/graph"
)

// PatchBias is a learned number for each head and each distance between patches, and
// for the pairs with the first token. It is added to the scores of the attention (BEiT,
// arXiv 2106.08254; BeitRelativePositionBias of the transformers library).
type PatchBias struct {
	Own  int64 // patches per side of the model's own images, for which the table is made
	Side int64 // patches per side of the training's images
}

// scores adds the bias of each pair of tokens. The table is always interpolated.
func (b *PatchBias) scores(g *graph.Graph, heads int64) int {
	defer g.Module("relative_position_bias")()
	square := func(side int64) int64 { return (2*side - 1) * (2*side - 1) }
	const firstToken = 3 // from the first token, to it, and with itself
	table := g.Table("table", square(b.Own)+firstToken, heads)
	table = g.CopyOf("interpolated", table, square(b.Side)+firstToken, heads)
	n := b.Side*b.Side + 1
	return g.CopyOf("scores", table, heads, n, n)
}

// turnPatches adds rotary positions to the queries or keys of patches. The first tokens
// stay unchanged. Under autocast the factors and the result have 32 bits.
func (d *Block) turnPatches(g *graph.Graph, name string, in int) int {
	defer g.Module("rotary_" + name)()
	n, width := g.Shape(in)[0], g.Last(in)
	factors := g.Op(models.Copy, "factors", []int64{n - d.Prefix, d.Key}, graph.Data)
	g.Layers[factors].Whole = true
	first, x := g.View("first", in, d.Prefix, width), g.View("patches", in, n-d.Prefix, width)
	part := func(name string, x int) int {
		return g.Keeping(g.Op(models.Mul, name, g.Shape(x), x, factors), models.Keeps{Inputs: []int{1}})
	}
	turned := g.Unary(models.Concat, "rotate_half", x)
	x = g.Plus("add", part("cos", x), part("sin", turned))
	return g.Op(models.Concat, "concat", []int64{n, width}, first, x)
}
