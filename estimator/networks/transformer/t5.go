package transformer

import (
	"fmt"
	"strings"

	"carma/configs/models"
	"carma/estimator/networks/graph"
)

// T5s returns the networks of Raffel et al. 2020 (version 1.0), with attention in single
// operations, a learned bias by distance, and a dropout of 0.1. Encoder and decoder have
// sequences of the same length.
func T5s() graph.Group {
	named := func(name string, t t5) graph.Network {
		return graph.Network{Name: name, Kind: models.Transformer, Batch: 8, Size: graph.Sizes{Sequence: 512, Vocabulary: 32128}, Build: t.build}
	}
	return graph.Group{Name: "t5", Description: "encoder and decoder from text to text (T5)", Entries: []graph.Network{
		named("t5_small", t5{width: 512, inner: 2048, depth: 6, heads: 8}), named("t5_base", t5{width: 768, inner: 3072, depth: 12, heads: 12}),
		named("t5_large", t5{width: 1024, inner: 4096, depth: 24, heads: 16}),
	}}
}

type t5 struct{ width, inner, depth, heads int64 }

func (t t5) build(g *graph.Graph, s graph.Sizes) {
	g.Text(s)
	g.Input(8, s.Sequence) // input of the decoder: the labels, shifted
	words := g.Embedding("shared", graph.Data, s.Vocabulary, t.width)
	x := t.stack(g, "encoder", words, -1)
	cache(g, x)
	out := g.Embedding("shared", -len(g.Inputs), s.Vocabulary, t.width)
	g.Layers[out].Tied = true
	x = t.stack(g, "decoder", out, x)
	g.CrossEntropy("loss", g.Tied("lm_head", g.Scale("scale", x), s.Vocabulary, false), graph.Second)
}

// stack adds the encoder, or the decoder if encoded is a layer.
func (t t5) stack(g *graph.Graph, name string, in, encoded int) int {
	defer g.Module(name)()
	n := g.Shape(in)[0]
	x := g.Drop("dropout", in)
	distances := g.Table("block.0.layer.0.SelfAttention.relative_attention_bias", 32, t.heads)
	bias := g.CopyOf("position_bias", distances, t.heads, n, n)
	for i := range t.depth {
		leave := g.StartBlock(fmt.Sprintf("block.%d", i))
		x = t.attention(g, "layer.0", x, x, bias)
		if encoded >= 0 {
			x = t.attention(g, "layer.1", x, encoded, -1)
		}
		x = t.forward(g, "layer.ff", x)
		leave()
	}
	return g.Drop("last_dropout", rmsNorm(g, "final_layer_norm", x))
}

// attention takes keys and values from source. Self-attention takes them from the
// normed input.
func (t t5) attention(g *graph.Graph, name string, in, source, bias int) int {
	defer g.Module(name)()
	x := rmsNorm(g, "layer_norm", in)
	if source == in {
		source = x
	}
	wide := 64 * t.heads
	q := g.Adapted("q", x, wide, false)
	k, v := g.Linear("k", source, wide, false), g.Adapted("v", source, wide, false)
	if strings.HasPrefix(g.Scope, "decoder") {
		cache(g, k, v)
	}
	n, m := g.Shape(q)[0], g.Shape(k)[0]
	// The products take contiguous copies of query, key and value.
	q, k = g.CopyOf("q.contiguous", q, n, wide), g.CopyOf("k.contiguous", k, m, wide)
	a := g.Scale("scale", g.Op(models.MatMul, "scores", []int64{t.heads, n, m}, q, k))
	if bias >= 0 {
		a = g.Plus("bias.add", a, bias)
	} else {
		a = g.Unary(models.Add, "bias.add", a)
	}
	a = g.Drop("dropout", g.Unary(models.Softmax, "softmax", a))
	a = g.Op(models.MatMul, "weighted", []int64{t.heads, n, 64}, a, g.CopyOf("v.contiguous", v, m, wide))
	x = g.Linear("o", g.CopyOf("transpose", a, n, wide), t.width, false)
	return g.Plus("add", in, g.Drop("dropout", x))
}

func (t t5) forward(g *graph.Graph, name string, in int) int {
	defer g.Module(name)()
	x := g.Linear("wi", rmsNorm(g, "layer_norm", in), t.inner, false)
	x = g.Drop("dropout", g.Unary(models.ReLU, "act", x))
	return g.Plus("add", in, g.Drop("last_dropout", g.Linear("wo", x, t.width, false)))
}
