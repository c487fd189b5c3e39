package zoo

import (
	"fmt"

	"carma/configs/models"
)

// llamas are of Touvron et al. 2023 and the Llama 3 herd of 2024. They have RMS
// norms, rotary positions, grouped queries, gated linear units and fused
// attention. Mistral (Jiang et al. 2023) has the same structure.
func llamas() group {
	c := group{name: "llama", description: "decoders of 1 to 8 billion parameters (Llama, Mistral)"}
	for _, v := range []struct {
		name    string
		aliases []string
		l       llama
		batch   int
		words   int64
		longest int64
	}{
		{"tinyllama", []string{"tinyllama_1b"}, llama{2048, 5632, 22, 32, 4, 64, false}, 4, 32000, 2048},
		{"llama_1b", []string{"llama3.2_1b"}, llama{2048, 8192, 16, 32, 8, 64, true}, 4, 128256, 131072},
		{"llama_3b", []string{"llama3.2_3b"}, llama{3072, 8192, 28, 24, 8, 128, true}, 2, 128256, 131072},
		{"llama_7b", []string{"llama2_7b"}, llama{4096, 11008, 32, 32, 32, 128, false}, 1, 32000, 4096},
		{"mistral_7b", nil, llama{4096, 14336, 32, 32, 8, 128, false}, 1, 32000, 32768},
		{"llama3_8b", []string{"llama_8b", "llama3.1_8b"}, llama{4096, 14336, 32, 32, 8, 128, false}, 1, 128256, 131072},
	} {
		c.entries = append(c.entries, entry{
			name: v.name, aliases: v.aliases, kind: models.Transformer, batch: v.batch,
			size: settings{sequence: 1024, vocabulary: v.words}, longest: v.longest, build: v.l.build,
		})
	}
	return c
}

type llama struct {
	width, inner, depth, heads, groups, key int64
	tied                                    bool // the head shares the table of tokens
}

func (l llama) build(g *graph, s settings) {
	g.text(s)
	x := g.embedding("model.embed_tokens", data, s.vocabulary, l.width)
	for i := range l.depth {
		x = l.block(g, fmt.Sprintf("model.layers.%d", i), x)
	}
	x = g.rmsNorm("model.norm", x)
	if l.tied {
		g.nextToken(g.tied("lm_head", x, s.vocabulary, false))
	} else {
		g.nextToken(g.linear("lm_head", x, s.vocabulary, false))
	}
}

func (l llama) block(g *graph, name string, in int) int {
	defer g.startBlock(name)()
	x := g.rmsNorm("input_layernorm", in)
	q := g.rotate("self_attn.q", g.adapted("self_attn.q_proj", x, l.heads*l.key, false))
	k := g.rotate("self_attn.k", g.linear("self_attn.k_proj", x, l.groups*l.key, false))
	v := g.adapted("self_attn.v_proj", x, l.groups*l.key, false)
	x = g.linear("self_attn.o_proj", g.attend("self_attn.sdpa", q, k, v, l.heads), l.width, false)
	in = g.plus("add1", in, x)
	x = g.rmsNorm("post_attention_layernorm", in)
	gate := g.unary(models.SiLU, "mlp.act_fn", g.linear("mlp.gate_proj", x, l.inner, false))
	x = g.times("mlp.mul", gate, g.linear("mlp.up_proj", x, l.inner, false))
	return g.plus("add2", in, g.linear("mlp.down_proj", x, l.width, false))
}

// rotate turns pairs of numbers by the position: x cos + half-swapped x sin.
func (g *graph) rotate(name string, in int) int {
	defer g.module(name)()
	turned := g.unary(models.Concat, "rotate_half", in)
	return g.plus("add", g.scale("cos", in), g.scale("sin", turned))
}

// rmsNorm adds the root mean square norm as two operations. The division is done in
// 32 bits and keeps its input so, and the divisors; the weight keeps the division's
// output.
func (g *graph) rmsNorm(name string, in int) int { return g.headNorm(name, in, g.last(in)) }

// headNorm is an RMS norm of each head of key numbers.
func (g *graph) headNorm(name string, in int, key int64) int {
	return g.divided(name, in, key, models.Keeps{Wide: []int{0}})
}

// narrowNorm is an RMS norm that keeps its input as it is as well.
func (g *graph) narrowNorm(name string, in int) int {
	return g.divided(name, in, g.last(in), models.Keeps{Inputs: []int{0}, Wide: []int{0}})
}

// offsetNorm is an RMS norm that multiplies by 1 + weight before it goes back to 16
// bits, as Gemma's.
func (g *graph) offsetNorm(name string, in int) int {
	i := g.rmsNorm(name, in)
	if k := g.layers[i].Keeps; len(k.Inputs) > 0 {
		k.Inputs, k.Wide = nil, []int{0}
	}
	return i
}

// divided divides each key numbers by their root mean square, and multiplies by a weight.
func (g *graph) divided(name string, in int, key int64, keeps models.Keeps) int {
	defer g.module(name)()
	s := g.shape(in)
	keeps.Bytes = 4 * s[0] * (s[1] / key)
	return g.weighted("weight", g.keeping(g.unary(models.RMSNorm, "divide", in), keeps), key)
}

// weighted multiplies by learned numbers. Their gradient needs the input.
func (g *graph) weighted(name string, in int, width int64) int {
	i := g.unary(models.Mul, name, in)
	g.layers[i].Params = []int64{width}
	g.layers[i].Frozen = g.rank > 0
	keeps := models.Keeps{Inputs: []int{0}}
	if g.rank > 0 {
		keeps.Inputs = nil
	}
	return g.keeping(i, keeps)
}
