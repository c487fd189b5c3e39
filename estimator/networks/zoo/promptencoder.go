package zoo

import (
	"fmt"

	"carma/configs/models"
)

// PromptEncoder is the text part of CLIP.
type PromptEncoder struct {
	Width, Inner, Depth, Heads int64
	Projection                 int64 // of the last token; 0: none
	Tokens                     int64
}

var (
	clipL = &PromptEncoder{Width: 768, Inner: 3072, Depth: 12, Heads: 12, Tokens: clipTokens}
	clipH = &PromptEncoder{Width: 1024, Inner: 4096, Depth: 23, Heads: 16, Tokens: clipTokens}
	clipG = &PromptEncoder{Width: 1280, Inner: 5120, Depth: 32, Heads: 20, Projection: 1280, Tokens: clipTokens}
)

// frozen encodes prompts without a gradient.
func (t *PromptEncoder) frozen(g *graph, name string) int {
	defer g.freeze(0)()
	defer g.module(name)()
	ids := g.newInput(8, t.Tokens)
	const vocabulary = 49408
	x := g.embedding("token_embedding", ids, vocabulary, t.Width)
	x = g.plus("embeddings", x, g.table("position_embedding", t.Tokens, t.Width))
	for i := range t.Depth {
		leave := g.module(fmt.Sprintf("layers.%d", i))
		y := g.layerNorm("layer_norm1", x)
		q, k, v := g.linear("q_proj", y, t.Width, true), g.linear("k_proj", y, t.Width, true), g.linear("v_proj", y, t.Width, true)
		x = g.plus("add1", x, g.linear("out_proj", g.attend("sdpa", q, k, v, t.Heads), t.Width, true))
		y = g.unary(models.GELU, "act", g.linear("fc1", g.layerNorm("layer_norm2", x), t.Inner, true))
		x = g.plus("add2", x, g.linear("fc2", y, t.Width, true))
		leave()
	}
	x = g.layerNorm("final_layer_norm", x)
	if t.Projection > 0 {
		x = g.stored("text_projection", x, []int64{t.Width * t.Projection})
	}
	return x
}
