package onnxfile

import (
	"slices"

	"carma/configs/models"
)

// attention makes the layer of an operator that takes queries, keys and values.
func (b *builder) attention(c *call) {
	l := models.Layer{Type: models.Attention, Inputs: b.sources(c.in[:min(3, len(c.in))])}
	q := b.arg(c, 0)
	switch {
	case c.op == "MultiHeadAttention":
		l.Heads = max(1, c.num("num_heads", 1))
		if len(c.in) > 3 {
			b.params(&l, c.in[3])
		}
	case len(q.shape) == 4:
		l.Heads = max(1, q.shape[1])
	default:
		l.Heads = max(1, c.num("q_num_heads", 1))
	}
	b.add(c, 0, l)
	b.values[c.out[0]].loose = true
}

// projected makes attention that computes queries, keys and values from its
// input.
func (b *builder) projected(c *call) {
	x, out := b.arg(c, 0), &b.values[c.out[0]]
	wide := *out
	wide.shape = slices.Clone(x.shape)
	wide.shape[2] = b.values[c.in[1]].shape[1]
	linear := models.Layer{Type: models.Linear, Name: nameOf(c) + ".qkv", Inputs: b.sources(c.in[:1])}
	linear.Out, linear.Whole = b.perSample(&wide)
	b.params(&linear, c.in[1:min(3, len(c.in))]...)
	b.layers = append(b.layers, linear)
	from := len(b.layers) - 1
	each, whole := b.perSample(out)
	for _, name := range []string{".query", ".key", ".value"} {
		b.layers = append(b.layers, models.Layer{Type: models.View, Name: nameOf(c) + name, Inputs: []int{from}, Out: each, Whole: whole})
	}
	b.add(c, 0, models.Layer{Type: models.Attention, Inputs: []int{from + 1, from + 2, from + 3}, Heads: max(1, c.num("num_heads", 1))})
}

// skipNorm makes an addition and a norm after it.
func (b *builder) skipNorm(c *call) {
	add := models.Layer{Type: models.Add, Name: nameOf(c) + ".add", Inputs: b.sources(c.in[:min(2, len(c.in))])}
	add.Out, add.Whole = b.perSample(&b.values[c.in[0]])
	b.layers = append(b.layers, add)
	sum := len(b.layers) - 1
	l := models.Layer{Type: models.LayerNorm, Inputs: []int{sum}}
	if c.op != "SkipLayerNormalization" {
		l.Type = models.RMSNorm
	}
	b.norms++
	b.params(&l, c.in[min(2, len(c.in)):]...)
	b.add(c, 0, l)
	if len(c.out) > 3 && c.out[3] >= 0 {
		b.values[c.out[3]].layer = sum
	}
}
