package zoo

import (
	"fmt"
	"strings"

	"carma/configs/models"
)

// t5s are of Raffel et al. 2020 (version 1.0), with attention in single
// operations, a learned bias by distance, and a dropout of 0.1. Encoder and
// decoder have sequences of the same length.
func t5s() group {
	c := group{name: "t5", description: "encoder and decoder from text to text (T5)"}
	for _, v := range []struct {
		name string
		t    t5
	}{
		{"small", t5{width: 512, inner: 2048, depth: 6, heads: 8}},
		{"base", t5{width: 768, inner: 3072, depth: 12, heads: 12}},
		{"large", t5{width: 1024, inner: 4096, depth: 24, heads: 16}},
	} {
		c.entries = append(c.entries, entry{
			name: "t5_" + v.name, kind: models.Transformer, batch: 8, size: settings{sequence: 512, vocabulary: 32128},
			build: v.t.build,
		})
	}
	return c
}

type t5 struct{ width, inner, depth, heads int64 }

func (t t5) build(g *graph, s settings) {
	g.text(s)
	g.input(8, s.sequence) // input of the decoder: the labels, shifted
	words := g.embedding("shared", data, s.vocabulary, t.width)
	x := t.stack(g, "encoder", words, -1)
	g.cache(x)
	out := g.embedding("shared", -len(g.inputs), s.vocabulary, t.width)
	g.layers[out].Tied = true
	x = t.stack(g, "decoder", out, x)
	g.crossEntropy("loss", g.tied("lm_head", g.scale("scale", x), s.vocabulary, false), second)
}

// stack adds the encoder, or the decoder if encoded is a layer.
func (t t5) stack(g *graph, name string, in, encoded int) int {
	defer g.module(name)()
	n := g.shape(in)[0]
	x := g.drop("dropout", in)
	distances := g.table("block.0.layer.0.SelfAttention.relative_attention_bias", 32, t.heads)
	bias := g.copyOf("position_bias", distances, t.heads, n, n)
	for i := range t.depth {
		leave := g.startBlock(fmt.Sprintf("block.%d", i))
		x = t.attention(g, "layer.0", x, x, bias)
		if encoded >= 0 {
			x = t.attention(g, "layer.1", x, encoded, -1)
		}
		x = t.forward(g, "layer.ff", x)
		leave()
	}
	return g.drop("last_dropout", g.rmsNorm("final_layer_norm", x))
}

// attention takes keys and values from source. Self-attention takes them from the
// normed input.
func (t t5) attention(g *graph, name string, in, source, bias int) int {
	defer g.module(name)()
	x := g.rmsNorm("layer_norm", in)
	if source == in {
		source = x
	}
	wide := 64 * t.heads
	q := g.adapted("q", x, wide, false)
	k, v := g.linear("k", source, wide, false), g.adapted("v", source, wide, false)
	if strings.HasPrefix(g.scope, "decoder") {
		g.cache(k, v)
	}
	n, m := g.shape(q)[0], g.shape(k)[0]
	// The products take contiguous copies of query, key and value.
	q, k = g.copyOf("q.contiguous", q, n, wide), g.copyOf("k.contiguous", k, m, wide)
	a := g.scale("scale", g.op(models.MatMul, "scores", []int64{t.heads, n, m}, q, k))
	if bias >= 0 {
		a = g.plus("bias.add", a, bias)
	} else {
		a = g.unary(models.Add, "bias.add", a)
	}
	a = g.drop("dropout", g.unary(models.Softmax, "softmax", a))
	a = g.op(models.MatMul, "weighted", []int64{t.heads, n, 64}, a, g.copyOf("v.contiguous", v, m, wide))
	x = g.linear("o", g.copyOf("transpose", a, n, wide), t.width, false)
	return g.plus("add", in, g.drop("dropout", x))
}

func (t t5) forward(g *graph, name string, in int) int {
	defer g.module(name)()
	x := g.linear("wi", g.rmsNorm("layer_norm", in), t.inner, false)
	x = g.drop("dropout", g.unary(models.ReLU, "act", x))
	return g.plus("add", in, g.drop("last_dropout", g.linear("wo", x, t.width, false)))
}
