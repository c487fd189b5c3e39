package transformer

import (
	"carma/configs/models"
	"carma/estimator/networks/graph"
)

// Distances is attention with scores between tokens and relative distances, in single
// operations (DeBERTa, arXiv 2006.03654).
type Distances struct {
	Span    int64 // distances on each side
	Norm    bool  // the table of distances is normed
	Dropout bool  // dropout of the scores
	Shared  bool  // distances use the tokens' projections
	// TokenToDistance and DistanceToToken are the kinds of scores (c2p, p2c).
	TokenToDistance, DistanceToToken bool
}

// table returns the input that all blocks share: a vector for each distance.
func (d *Distances) table(g *graph.Graph, width int64) int {
	x := g.Table("rel_embeddings", 2*d.Span, width)
	if d.Norm {
		return g.LayerNorm("rel_LayerNorm", x)
	}
	return x
}

// distant adds the attention of a block, without its last projection.
func (d *Block) distant(g *graph.Graph, x, table int) int {
	n, wide := g.Shape(x)[0], d.Heads*d.Key
	q := g.CopyOf("q.contiguous", g.Adapted(d.Projections.Q, x, wide, d.BiasQKV), n, wide)
	k := g.CopyOf("k.contiguous", g.Linear(d.Projections.K, x, wide, d.BiasQKV), n, wide)
	v := g.CopyOf("v.contiguous", g.Adapted(d.Projections.V, x, wide, d.BiasQKV), n, wide)
	each := []int64{d.Heads, n, n}
	a := g.Op(models.MatMul, "scores", each, q, g.Scale("k.scale", k))
	rel := d.drop(g, "pos_dropout", table)
	if d.Distances.TokenToDistance {
		a = d.toDistances(g, "c2p", d.Projections.K, a, q, rel)
	}
	if d.Distances.DistanceToToken {
		a = d.toDistances(g, "p2c", d.Projections.Q, a, k, rel)
	}
	// A byte for each pair marks masked pairs.
	a = g.Keeping(g.Unary(models.Copy, "mask", a), models.Keeps{Bytes: n * n})
	a = g.Unary(models.Softmax, "softmax", a)
	a = g.DropIf(d.Distances.Dropout, "dropout", a)
	a = g.Op(models.MatMul, "weighted", []int64{d.Heads, n, d.Key}, a, v)
	return g.CopyOf("transpose", a, n, wide)
}

// toDistances adds the scores of tokens with all distances, from which each pair takes
// one.
func (d *Block) toDistances(g *graph.Graph, name, projection string, scores, tokens, rel int) int {
	defer g.Module(name)()
	n, wide, rows := g.Shape(tokens)[0], d.Heads*d.Key, 2*d.Distances.Span
	p := g.Plain(projection, rel, wide, true)
	g.Layers[p].Tied = d.Distances.Shared
	p = g.PerSample(g.CopyOf("repeat", p, rows, wide))
	a := g.Op(models.MatMul, "scores", []int64{d.Heads, n, rows}, tokens, p)
	a = g.Keeping(g.Op(models.OtherLayer, "gather", []int64{d.Heads, n, n}, a), models.Keeps{Inputs: []int{0}, Whole: 8 * n * n})
	return g.Plus("add", scores, g.Scale("scale", a))
}
