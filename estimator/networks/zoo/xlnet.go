package zoo

import (
	"fmt"

	"carma/configs/models"
)

// xlnets are of Yang et al. 2019, cased, for classifying sequences. Their
// attention has a term for the content and one for the relative position. Each is
// a matrix of all pairs of tokens.
func xlnets() group {
	c := group{name: "xlnet", description: "encoders with relative positions (XLNet)"}
	for _, v := range []struct {
		name                string
		width, depth, heads int64
		batch               int
	}{
		{"base", 768, 12, 12, 8}, {"large", 1024, 24, 16, 4},
	} {
		c.entries = append(c.entries, entry{
			name: "xlnet_" + v.name, aliases: []string{"xlnet_" + v.name + "_cased"}, kind: models.Transformer,
			batch: v.batch, size: settings{sequence: 512, vocabulary: 32000, classes: 2},
			build: func(g *graph, s settings) { g.xlnet(v.width, v.depth, v.heads, s) },
		})
	}
	return c
}

func (g *graph) xlnet(width, depth, heads int64, s settings) {
	g.input(8, s.sequence)
	g.input(8, 1)
	leave := g.module("transformer")
	g.table("mask_emb", 1, width)
	x := g.drop("dropout", g.embedding("word_embedding", data, s.vocabulary, width))
	r := g.add(models.Layer{
		Name: "pos_emb", Type: models.OtherLayer, Inputs: []int{data}, Out: []int64{2 * s.sequence, width}, Whole: true,
		Keeps: &models.Keeps{},
	})
	r = g.perSample(g.drop("pos_emb.dropout", r))
	for i := range depth {
		x = g.xlnetLayer(fmt.Sprintf("layer.%d", i), x, r, heads)
	}
	x = g.copyOf("contiguous", g.drop("last_dropout", x), s.sequence, width)
	leave()
	x = g.linear("sequence_summary.summary", g.view("last_token", x, width), width, true)
	x = g.drop("sequence_summary.last_dropout", g.unary(models.Tanh, "sequence_summary.activation", x))
	g.classify(g.linear("logits_proj", x, s.classes, true))
}

func (g *graph) xlnetLayer(name string, in, r int, heads int64) int {
	defer g.startBlock(name)()
	width := g.last(in)
	in = g.relative(in, r, heads)
	leave := g.module("ff")
	defer leave()
	x := g.unary(models.GELU, "activation_function", g.linear("layer_1", in, 4*width, true))
	x = g.linear("layer_2", g.drop("dropout1", x), width, true)
	return g.layerNorm("layer_norm", g.plus("add", g.drop("dropout2", x), in))
}

// biased adds a learned vector to the queries.
func (g *graph) biased(name string, in int) int {
	i := g.unary(models.Add, name, in)
	g.layers[i].Params = []int64{g.last(in)}
	g.layers[i].Frozen = g.rank > 0
	return i
}

func (g *graph) relative(in, r int, heads int64) int {
	defer g.module("rel_attn")()
	n, width := g.shape(in)[0], g.last(in)
	// This task uses no segments, but their parameters exist.
	g.table("r_s_bias", width)
	g.table("seg_embed", 2, width)
	q := g.linear("q", in, width, false)
	k, v := g.linear("k", in, width, false), g.linear("v", in, width, false)
	positions := g.linear("r", r, width, false)
	content := g.op(models.MatMul, "ac", []int64{heads, n, n}, g.biased("r_w_bias", q), k)
	position := g.op(models.MatMul, "bd", []int64{heads, n, 2 * n}, g.biased("r_r_bias", q), positions)
	position = g.copyOf("rel_shift", position, heads, n, n)
	x := g.unary(models.Add, "add_segments", g.plus("add_scores", content, position))
	x = g.drop("dropout1", g.unary(models.Softmax, "softmax", g.scale("scale", x)))
	x = g.op(models.MatMul, "weighted", []int64{heads, n, width / heads}, x, v)
	x = g.linear("o", g.copyOf("transpose", x, n, width), width, false)
	return g.layerNorm("layer_norm", g.plus("add", g.drop("dropout2", x), in))
}
