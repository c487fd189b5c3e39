package transformer

import (
	"carma/configs/models"
	"carma/estimator/networks/graph"
)

// BERTs returns the networks of Devlin et al. 2019: cased, trained to fill in masked
// tokens, with fused attention and a dropout of 0.1.
func BERTs() graph.Group {
	named := func(name string, batch int, t *TextEncoder) graph.Network {
		return graph.Network{Name: name, Aliases: []string{name + "_cased"}, Kind: models.Transformer, Batch: batch, Size: graph.Sizes{Sequence: 512, Vocabulary: 28996}, Longest: 512, Build: t.build}
	}
	return graph.Group{Name: "bert", Description: "encoders trained on masked tokens (BERT)", Entries: []graph.Network{
		named("bert_base", 32, bert(768, 12, 12)), named("bert_large", 8, bert(1024, 24, 16)),
	}}
}

func bert(width, depth, heads int64) *TextEncoder {
	return &TextEncoder{
		Block: Block{
			Width: width, Inner: 4 * width, Heads: heads, Groups: heads, Key: width / heads,
			LayerNorm: true, SumNorm: true, Dropout: true, Activation: models.GELU, BiasQKV: true, BiasOut: true, BiasInner: true,
			Projections: Projections{Q: "query", K: "key", V: "value", Out: "attention.output.dense", Up: "intermediate.dense", Down: "output.dense"},
		},
		Depth: depth, Positions: 512, Types: 2, Head: graph.MaskedLM,
	}
}
