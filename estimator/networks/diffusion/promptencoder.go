package diffusion

import (
	"fmt"

	"carma/configs/models"
	"carma/estimator/networks/graph"
)

// PromptEncoder is the text part of CLIP.
type PromptEncoder struct {
	Width, Inner, Depth, Heads int64
	Projection                 int64 // width of the last token's projection, or 0 if none
	Tokens                     int64
}

var (
	clipL = &PromptEncoder{Width: 768, Inner: 3072, Depth: 12, Heads: 12, Tokens: clipTokens}
	clipH = &PromptEncoder{Width: 1024, Inner: 4096, Depth: 23, Heads: 16, Tokens: clipTokens}
	clipG = &PromptEncoder{Width: 1280, Inner: 5120, Depth: 32, Heads: 20, Projection: 1280, Tokens: clipTokens}
)

// frozen encodes prompts without a gradient.
func (t *PromptEncoder) frozen(g *graph.Graph, name string) int {
	defer g.Freeze(0)()
	defer g.Module(name)()
	ids := g.NewInput(8, t.Tokens)
	const vocabulary = 49408
	x := g.Embedding("token_embedding", ids, vocabulary, t.Width)
	x = g.Plus("embeddings", x, g.Table("position_embedding", t.Tokens, t.Width))
	for i := range t.Depth {
		leave := g.Module(fmt.Sprintf("layers.%d", i))
		y := g.LayerNorm("layer_norm1", x)
		q, k, v := g.Linear("q_proj", y, t.Width, true), g.Linear("k_proj", y, t.Width, true), g.Linear("v_proj", y, t.Width, true)
		x = g.Plus("add1", x, g.Linear("out_proj", g.Attend("sdpa", q, k, v, t.Heads), t.Width, true))
		y = g.Unary(models.GELU, "act", g.Linear("fc1", g.LayerNorm("layer_norm2", x), t.Inner, true))
		x = g.Plus("add2", x, g.Linear("fc2", y, t.Width, true))
		leave()
	}
	x = g.LayerNorm("final_layer_norm", x)
	if t.Projection > 0 {
		x = g.Stored("text_projection", x, []int64{t.Width * t.Projection})
	}
	return x
}
