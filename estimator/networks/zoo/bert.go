package zoo

import (
	"fmt"

	"carma/configs/models"
)

// berts are of Devlin et al. 2019, cased, trained to fill in masked tokens;
// fused attention, a dropout of 0.1.
func berts() group {
	c := group{name: "bert", description: "encoders trained on masked tokens (BERT)"}
	for _, v := range []struct {
		name                string
		width, depth, heads int64
		batch               int
	}{
		{"base", 768, 12, 12, 32}, {"large", 1024, 24, 16, 8},
	} {
		c.entries = append(c.entries, entry{
			name: "bert_" + v.name, aliases: []string{"bert_" + v.name + "_cased"}, kind: models.Transformer,
			batch: v.batch, size: settings{sequence: 512, vocabulary: 28996}, longest: 512,
			build: func(g *graph, s settings) { g.bert(v.width, v.depth, v.heads, s) },
		})
	}
	return c
}

func (g *graph) bert(width, depth, heads int64, s settings) {
	g.text(s)
	leave := g.module("bert.embeddings")
	x := g.embedding("word_embeddings", data, s.vocabulary, width)
	g.input(8, s.sequence)
	x = g.plus("add1", x, g.embedding("token_type_embeddings", -len(g.inputs), 2, width))
	x = g.plus("add2", x, g.positions("position_embeddings", 512, s.sequence, width))
	x = g.drop("dropout", g.layerNorm("LayerNorm", x))
	leave()
	for i := range depth {
		x = g.bertLayer(fmt.Sprintf("bert.encoder.layer.%d", i), x, heads)
	}
	leave = g.module("cls.predictions")
	x = g.unary(models.GELU, "transform.transform_act_fn", g.linear("transform.dense", x, width, true))
	x = g.layerNorm("transform.LayerNorm", x)
	x = g.tied("decoder", x, s.vocabulary, true)
	leave()
	g.crossEntropy("loss", x, second)
}

func (g *graph) bertLayer(name string, in int, heads int64) int {
	defer g.startBlock(name)()
	width := g.last(in)
	q := g.adapted("attention.self.query", in, width, true)
	k := g.linear("attention.self.key", in, width, true)
	v := g.adapted("attention.self.value", in, width, true)
	x := g.linear("attention.output.dense", g.attend("attention.self.sdpa", q, k, v, heads), width, true)
	x = g.plus("attention.output.add", g.drop("attention.output.dropout", x), in)
	in = g.layerNorm("attention.output.LayerNorm", x)
	x = g.unary(models.GELU, "intermediate.act", g.linear("intermediate.dense", in, 4*width, true))
	x = g.plus("output.add", g.drop("output.dropout", g.linear("output.dense", x, width, true)), in)
	return g.layerNorm("output.LayerNorm", x)
}
