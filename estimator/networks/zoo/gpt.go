package zoo

import (
	"fmt"

	"carma/configs/models"
)

// gpts are of Radford et al. 2019, trained on the next token. They have fused
// attention and a dropout of 0.1. GELU consists of single operations, as in the
// transformers library.
func gpts() group {
	c := group{name: "gpt2", description: "decoders trained on the next token (GPT-2)"}
	for _, v := range []struct {
		name                string
		aliases             []string
		width, depth, heads int64
		batch               int
	}{
		{"gpt2", []string{"gpt2_small"}, 768, 12, 12, 8},
		{"gpt2_medium", nil, 1024, 24, 16, 8},
		{"gpt2_large", nil, 1280, 36, 20, 8},
		{"gpt2_xl", nil, 1600, 48, 25, 2},
	} {
		c.entries = append(c.entries, entry{
			name: v.name, aliases: v.aliases, kind: models.Transformer, batch: v.batch,
			size: settings{sequence: 1024, vocabulary: 50257}, longest: 1024,
			build: func(g *graph, s settings) { g.gpt2(v.width, v.depth, v.heads, s) },
		})
	}
	return c
}

func (g *graph) gpt2(width, depth, heads int64, s settings) {
	g.text(s)
	x := g.embedding("transformer.wte", data, s.vocabulary, width)
	x = g.plus("transformer.add", x, g.positions("transformer.wpe", 1024, s.sequence, width))
	x = g.drop("transformer.drop", x)
	for i := range depth {
		x = g.gpt2Block(fmt.Sprintf("transformer.h.%d", i), x, heads)
	}
	x = g.layerNorm("transformer.ln_f", x)
	g.nextToken(g.tied("lm_head", x, s.vocabulary, false))
}

func (g *graph) gpt2Block(name string, in int, heads int64) int {
	defer g.startBlock(name)()
	width := g.last(in)
	q, k, v := g.threeWay(g.adapted("attn.c_attn", g.layerNorm("ln_1", in), 3*width, true), width)
	x := g.linear("attn.c_proj", g.attend("attn.sdpa", q, k, v, heads), width, true)
	in = g.plus("add1", g.drop("attn.resid_dropout", x), in)
	x = g.newGELU("mlp.act", g.linear("mlp.c_fc", g.layerNorm("ln_2", in), 4*width, true))
	x = g.drop("mlp.dropout", g.linear("mlp.c_proj", x, width, true))
	return g.plus("add2", in, x)
}

// newGELU is 0.5 x (1 + tanh(c (x + 0.0447 x^3))), one operation at a time.
func (g *graph) newGELU(name string, in int) int {
	defer g.module(name)()
	x := g.unary(models.Pow, "pow", in)
	x = g.plus("add", in, g.scale("mul1", x))
	x = g.unary(models.Tanh, "tanh", g.scale("mul2", x))
	half := g.scale("half", in)
	return g.times("mul3", half, g.unary(models.Add, "one", x))
}
