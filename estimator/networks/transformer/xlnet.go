package transformer

import (
	"fmt"

	"carma/configs/models"
	"carma/estimator/networks/graph"
)

// XLNets returns the networks of Yang et al. 2019, cased, for classifying sequences.
// Their attention has a term for the content and a term for the relative position, each a
// matrix over all pairs of tokens.
func XLNets() graph.Group {
	named := func(name string, width, depth, heads int64, batch int) graph.Network {
		return graph.Network{
			Name: name, Aliases: []string{name + "_cased"}, Kind: models.Transformer, Batch: batch, Size: graph.Sizes{Sequence: 512, Vocabulary: 32000, Classes: 2},
			Build: func(g *graph.Graph, s graph.Sizes) { xlnet(g, width, depth, heads, s) },
		}
	}
	return graph.Group{Name: "xlnet", Description: "encoders with relative positions (XLNet)", Entries: []graph.Network{
		named("xlnet_base", 768, 12, 12, 8), named("xlnet_large", 1024, 24, 16, 4),
	}}
}

func xlnet(g *graph.Graph, width, depth, heads int64, s graph.Sizes) {
	g.Input(8, s.Sequence)
	g.Input(8, 1)
	leave := g.Module("transformer")
	g.Table("mask_emb", 1, width)
	x := g.Drop("dropout", g.Embedding("word_embedding", graph.Data, s.Vocabulary, width))
	r := g.Add(models.Layer{
		Name: "pos_emb", Type: models.OtherLayer, Inputs: []int{graph.Data}, Out: []int64{2 * s.Sequence, width}, Whole: true,
		Keeps: &models.Keeps{},
	})
	r = g.PerSample(g.Drop("pos_emb.dropout", r))
	for i := range depth {
		x = xlnetLayer(g, fmt.Sprintf("layer.%d", i), x, r, heads)
	}
	x = g.CopyOf("contiguous", g.Drop("last_dropout", x), s.Sequence, width)
	leave()
	x = g.Linear("sequence_summary.summary", g.View("last_token", x, width), width, true)
	x = g.Drop("sequence_summary.last_dropout", g.Unary(models.Tanh, "sequence_summary.activation", x))
	g.Classify(g.Linear("logits_proj", x, s.Classes, true))
}

func xlnetLayer(g *graph.Graph, name string, in, r int, heads int64) int {
	defer g.StartBlock(name)()
	width := g.Last(in)
	in = relative(g, in, r, heads)
	leave := g.Module("ff")
	defer leave()
	x := g.Unary(models.GELU, "activation_function", g.Linear("layer_1", in, 4*width, true))
	x = g.Linear("layer_2", g.Drop("dropout1", x), width, true)
	return g.LayerNorm("layer_norm", g.Plus("add", g.Drop("dropout2", x), in))
}

func relative(g *graph.Graph, in, r int, heads int64) int {
	defer g.Module("rel_attn")()
	n, width := g.Shape(in)[0], g.Last(in)
	// This task uses no segments, but their parameters exist.
	g.Table("r_s_bias", width)
	g.Table("seg_embed", 2, width)
	q := g.Linear("q", in, width, false)
	k, v := g.Linear("k", in, width, false), g.Linear("v", in, width, false)
	positions := g.Linear("r", r, width, false)
	content := g.Op(models.MatMul, "ac", []int64{heads, n, n}, g.Biased("r_w_bias", q), k)
	position := g.Op(models.MatMul, "bd", []int64{heads, n, 2 * n}, g.Biased("r_r_bias", q), positions)
	position = g.CopyOf("rel_shift", position, heads, n, n)
	x := g.Unary(models.Add, "add_segments", g.Plus("add_scores", content, position))
	x = g.Drop("dropout1", g.Unary(models.Softmax, "softmax", g.Scale("scale", x)))
	x = g.Op(models.MatMul, "weighted", []int64{heads, n, width / heads}, x, v)
	x = g.Linear("o", g.CopyOf("transpose", x, n, width), width, false)
	return g.LayerNorm("layer_norm", g.Plus("add", g.Drop("dropout2", x), in))
}
