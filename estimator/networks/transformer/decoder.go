package transformer

import (
	"fmt"

	"carma/configs/models"
	"carma/estimator/networks/graph"
)

// Decoder is a causal language model as built by the transformers library: a table of
// tokens, blocks, a norm, and the head.
type Decoder struct {
	Name string
	Block
	Depth      int64
	Vocabulary int64
	// Longest is the largest number of tokens, or 0 for no limit.
	Longest int64
	// Positions is the number of rows of a learned table, or 0 for rotary positions.
	Positions int64

	BiasHead    bool
	Tied        bool // the head shares the table of tokens
	ScaledInput bool // embeddings are multiplied by a constant
	SoftCap     bool // logits go through tanh
	// Outer is the width of the table of tokens and of the head if it differs from Width.
	// Two projections then convert between them.
	Outer int64
	// Masks is the size in bytes of boolean attention masks of all blocks that stay on the
	// GPU.
	Masks int64

	Head    string // empty for causal-lm
	Classes int64
}

// Config returns the training of a decoder on the next token, by default with a batch of
// 1 and at most 1024 tokens.
func (d *Decoder) Config(o models.Overrides) (*models.Config, error) {
	longest := d.Longest
	if d.Positions > 0 && (longest == 0 || longest > d.Positions) {
		longest = d.Positions
	}
	sequence := int64(1024)
	if longest > 0 {
		sequence = min(sequence, longest)
	}
	e := graph.Network{
		Name: d.Name, Kind: models.Transformer, Batch: 1, Longest: longest,
		Size: graph.Sizes{Sequence: sequence, Vocabulary: d.Vocabulary}, Build: d.build,
	}
	return e.Headed(d.Head, d.Classes).Config("", o)
}

func (d *Decoder) build(g *graph.Graph, s graph.Sizes) {
	if d.Projections == (Projections{}) {
		d.Projections = llamaNames
	}
	d.Rotary = d.Positions == 0
	g.Text(s)
	x := d.words(g, s)
	if d.ScaledInput {
		x = g.Scale("model.normalizer", x)
	}
	if d.Positions > 0 {
		x = g.Plus("model.add", x, g.Positions("model.embed_positions", d.Positions, s.Sequence, d.Width))
	}
	x = d.drop(g, "model.dropout", x)
	for i := range d.Depth {
		before := len(g.Layers)
		x = d.block(g, fmt.Sprintf("model.layers.%d", i), x, i)
		g.Expect((len(g.Layers) - before) * int(d.Depth-i))
	}
	if !d.SumNorm {
		x = d.Norm(g, "model.norm", x)
	}
	if d.Outer > 0 {
		x = g.Linear("model.project_out", x, d.Outer, false)
	}
	if d.Head == graph.SequenceClassification { // all tokens are scored; only the last one's classes count
		g.Trained(func() { x = g.Plain("score", x, s.Classes, false) })
		g.Classify(g.View("last", x, s.Classes))
		return
	}
	if d.Tied {
		x = g.Tied("lm_head", x, s.Vocabulary, false)
	} else {
		x = g.Linear("lm_head", x, s.Vocabulary, d.BiasHead)
	}
	if d.SoftCap {
		x = g.Scale("softcap.mul", g.Unary(models.Tanh, "softcap.tanh", g.Scale("softcap.div", x)))
	}
	g.CrossEntropy("loss", x, graph.Second)
}

// words looks up the table of tokens.
func (d *Decoder) words(g *graph.Graph, s graph.Sizes) int {
	width := d.Width
	if d.Outer > 0 {
		width = d.Outer
	}
	x := g.Embedding("model.embed_tokens", graph.Data, s.Vocabulary, width)
	if d.Masks > 0 {
		g.Keeping(x, models.Keeps{Whole: d.Masks * d.Depth})
	}
	if d.Outer > 0 {
		x = g.Linear("model.project_in", x, d.Width, false)
	}
	return x
}
