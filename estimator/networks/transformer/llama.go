package transformer

import (
	"fmt"

	"carma/configs/models"
	"carma/estimator/networks/graph"
)

// Llamas returns the networks of Touvron et al. 2023 and the Llama 3 herd of 2024. They
// have RMS norms, rotary positions, grouped queries, gated linear units and fused
// attention. Mistral (Jiang et al. 2023) has the same structure.
func Llamas() graph.Group {
	c := graph.Group{Name: "llama", Description: "decoders of 1 to 8 billion parameters (Llama, Mistral)"}
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
		c.Entries = append(c.Entries, graph.Network{
			Name: v.name, Aliases: v.aliases, Kind: models.Transformer, Batch: v.batch,
			Size: graph.Sizes{Sequence: 1024, Vocabulary: v.words}, Longest: v.longest, Build: v.l.build,
		})
	}
	return c
}

type llama struct {
	width, inner, depth, heads, groups, key int64
	tied                                    bool // the head shares the table of tokens
}

func (l llama) build(g *graph.Graph, s graph.Sizes) {
	g.Text(s)
	x := g.Embedding("model.embed_tokens", graph.Data, s.Vocabulary, l.width)
	for i := range l.depth {
		x = l.block(g, fmt.Sprintf("model.layers.%d", i), x)
	}
	x = rmsNorm(g, "model.norm", x)
	if l.tied {
		nextToken(g, g.Tied("lm_head", x, s.Vocabulary, false))
	} else {
		nextToken(g, g.Linear("lm_head", x, s.Vocabulary, false))
	}
}

func (l llama) block(g *graph.Graph, name string, in int) int {
	defer g.StartBlock(name)()
	x := rmsNorm(g, "input_layernorm", in)
	q := rotate(g, "self_attn.q", g.Adapted("self_attn.q_proj", x, l.heads*l.key, false))
	k := rotate(g, "self_attn.k", g.Linear("self_attn.k_proj", x, l.groups*l.key, false))
	v := g.Adapted("self_attn.v_proj", x, l.groups*l.key, false)
	x = g.Linear("self_attn.o_proj", g.Attend("self_attn.sdpa", q, k, v, l.heads), l.width, false)
	in = g.Plus("add1", in, x)
	x = rmsNorm(g, "post_attention_layernorm", in)
	gate := g.Unary(models.SiLU, "mlp.act_fn", g.Linear("mlp.gate_proj", x, l.inner, false))
	x = g.Times("mlp.mul", gate, g.Linear("mlp.up_proj", x, l.inner, false))
	return g.Plus("add2", in, g.Linear("mlp.down_proj", x, l.width, false))
}

// rotate turns pairs of numbers by the position: x cos + half-swapped x sin.
func rotate(g *graph.Graph, name string, in int) int {
	defer g.Module(name)()
	turned := g.Unary(models.Concat, "rotate_half", in)
	return g.Plus("add", g.Scale("cos", in), g.Scale("sin", turned))
}

// rmsNorm adds the root mean square norm as two operations. The division computes in 32
// bits, and keeps its 32-bit input and the divisors. The weight keeps the division's
// output.
func rmsNorm(g *graph.Graph, name string, in int) int { return headNorm(g, name, in, g.Last(in)) }

// headNorm adds an RMS norm of each head of key numbers.
func headNorm(g *graph.Graph, name string, in int, key int64) int {
	return divided(g, name, in, key, models.Keeps{Wide: []int{0}})
}

// narrowNorm adds an RMS norm that also keeps its unconverted input.
func narrowNorm(g *graph.Graph, name string, in int) int {
	return divided(g, name, in, g.Last(in), models.Keeps{Inputs: []int{0}, Wide: []int{0}})
}

// offsetNorm adds an RMS norm that multiplies by 1 + weight before the conversion to 16
// bits, as in Gemma.
func offsetNorm(g *graph.Graph, name string, in int) int {
	i := rmsNorm(g, name, in)
	if k := g.Layers[i].Keeps; len(k.Inputs) > 0 {
		k.Inputs, k.Wide = nil, []int{0}
	}
	return i
}

// divided divides each group of key numbers by its root mean square, and multiplies by a
// weight.
func divided(g *graph.Graph, name string, in int, key int64, keeps models.Keeps) int {
	defer g.Module(name)()
	s := g.Shape(in)
	keeps.Bytes = 4 * s[0] * (s[1] / key)
	return g.Weighted("weight", g.Keeping(g.Unary(models.RMSNorm, "divide", in), keeps), key)
}
