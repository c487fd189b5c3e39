package transformer

import (
	"carma/configs/models"
	"carma/estimator/networks/graph"
)

// BERTs are of Devlin et al. 2019: cased, trained to fill in masked tokens, with
// fused attention and a dropout of 0.1.
func BERTs() graph.Group {
	c := graph.Group{Name: "bert", Description: "encoders trained on masked tokens (BERT)"}
	for _, v := range []struct {
		name                string
		width, depth, heads int64
		batch               int
	}{
		{"base", 768, 12, 12, 32}, {"large", 1024, 24, 16, 8},
	} {
		c.Entries = append(c.Entries, graph.Network{
			Name: "bert_" + v.name, Aliases: []string{"bert_" + v.name + "_cased"}, Kind: models.Transformer,
			Batch: v.batch, Size: graph.Sizes{Sequence: 512, Vocabulary: 28996}, Longest: 512,
			Build: bert(v.width, v.depth, v.heads).build,
		})
	}
	return c
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
