package transformer

import (
	"fmt"

	"carma/configs/models"
	"carma/estimator/networks/graph"
)

// GPTs returns the networks of Radford et al. 2019, trained on the next token. They have
// fused attention and a dropout of 0.1. GELU consists of single operations, as in the
// transformers library.
func GPTs() graph.Group {
	gpt := func(name string, width, depth, heads int64, batch int) graph.Network {
		return graph.Network{
			Name: name, Kind: models.Transformer, Batch: batch, Size: graph.Sizes{Sequence: 1024, Vocabulary: 50257}, Longest: 1024,
			Build: func(g *graph.Graph, s graph.Sizes) { gpt2(g, width, depth, heads, s) },
		}
	}
	return graph.Group{Name: "gpt2", Description: "decoders trained on the next token (GPT-2)", Entries: []graph.Network{
		gpt("gpt2", 768, 12, 12, 8).Called("gpt2_small"), gpt("gpt2_medium", 1024, 24, 16, 8), gpt("gpt2_large", 1280, 36, 20, 8), gpt("gpt2_xl", 1600, 48, 25, 2),
	}}
}

func gpt2(g *graph.Graph, width, depth, heads int64, s graph.Sizes) {
	g.Text(s)
	x := g.Embedding("transformer.wte", graph.Data, s.Vocabulary, width)
	x = g.Plus("transformer.add", x, g.Positions("transformer.wpe", 1024, s.Sequence, width))
	x = g.Drop("transformer.drop", x)
	for i := range depth {
		x = gpt2Block(g, fmt.Sprintf("transformer.h.%d", i), x, heads)
	}
	x = g.LayerNorm("transformer.ln_f", x)
	nextToken(g, g.Tied("lm_head", x, s.Vocabulary, false))
}

func gpt2Block(g *graph.Graph, name string, in int, heads int64) int {
	defer g.StartBlock(name)()
	width := g.Last(in)
	q, k, v := g.ThreeWay(g.Adapted("attn.c_attn", g.LayerNorm("ln_1", in), 3*width, true), width)
	x := g.Linear("attn.c_proj", g.Attend("attn.sdpa", q, k, v, heads), width, true)
	in = g.Plus("add1", g.Drop("attn.resid_dropout", x), in)
	x = newGELU(g, "mlp.act", g.Linear("mlp.c_fc", g.LayerNorm("ln_2", in), 4*width, true))
	x = g.Drop("mlp.dropout", g.Linear("mlp.c_proj", x, width, true))
	return g.Plus("add2", in, x)
}

// newGELU adds 0.5 x (1 + tanh(c (x + 0.0447 x^3))), one operation at a time.
func newGELU(g *graph.Graph, name string, in int) int {
	defer g.Module(name)()
	x := g.Unary(models.Pow, "pow", in)
	x = g.Plus("add", in, g.Scale("mul1", x))
	x = g.Unary(models.Tanh, "tanh", g.Scale("mul2", x))
	half := g.Scale("half", in)
	return g.Times("mul3", half, g.Unary(models.Add, "one", x))
}

// nextToken ends a causal language model. It copies the logits of all tokens except the
// last, and the labels of all except the first.
func nextToken(g *graph.Graph, logits int) {
	s := g.Shape(logits)
	if s[0] < 2 {
		g.Fail("a sequence of %d token has no next one to learn", s[0])
		return
	}
	shifted := g.CopyOf("shift_logits", logits, s[0]-1, s[1])
	g.CrossEntropy("loss", shifted, graph.Second)
}
