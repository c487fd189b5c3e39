package zoo

import (
	"fmt"

	"carma/configs/models"
)

// Decoder is a causal language model as the transformers library builds it: a table
// of tokens, blocks, a norm, and the head.
type Decoder struct {
	Name string
	Block
	Depth      int64
	Vocabulary int64
	// Longest is the largest number of tokens; 0: no limit.
	Longest int64
	// Positions is the number of rows of a learned table; 0: rotary positions.
	Positions int64

	BiasHead    bool
	Tied        bool // the head shares the table of tokens
	ScaledInput bool // embeddings are multiplied by a constant
	SoftCap     bool // logits go through tanh
	// Outer is the width of the table of tokens and of the head if it is not Width; then
	// two projections are between.
	Outer int64
	// Masks is bytes of tables of booleans that stay on the GPU: which tokens attend to
	// which, for each block.
	Masks int64

	Head    string // empty: causal-lm
	Classes int64
}

// Config is the training of a decoder on the next token, by default with a batch of 1
// and at most 1024 tokens.
func (d *Decoder) Config(o models.Overrides) (*models.Config, error) {
	longest := d.Longest
	if d.Positions > 0 && (longest == 0 || longest > d.Positions) {
		longest = d.Positions
	}
	sequence := int64(1024)
	if longest > 0 {
		sequence = min(sequence, longest)
	}
	e := entry{
		name: d.Name, kind: models.Transformer, batch: 1, longest: longest,
		size: settings{sequence: sequence, vocabulary: d.Vocabulary}, build: d.build,
	}
	return e.headed(d.Head, d.Classes).config("", o)
}

func (d *Decoder) build(g *graph, s settings) {
	if d.Projections == (Projections{}) {
		d.Projections = llamaNames
	}
	d.Rotary = d.Positions == 0
	g.text(s)
	x := d.words(g, s)
	if d.ScaledInput {
		x = g.scale("model.normalizer", x)
	}
	if d.Positions > 0 {
		x = g.plus("model.add", x, g.positions("model.embed_positions", d.Positions, s.sequence, d.Width))
	}
	x = d.drop(g, "model.dropout", x)
	for i := range d.Depth {
		before := len(g.layers)
		x = d.block(g, fmt.Sprintf("model.layers.%d", i), x, i)
		g.expect((len(g.layers) - before) * int(d.Depth-i))
	}
	if !d.SumNorm {
		x = d.norm(g, "model.norm", x)
	}
	if d.Outer > 0 {
		x = g.linear("model.project_out", x, d.Outer, false)
	}
	if d.Head == SequenceClassification { // all tokens are scored, the last one's classes count
		g.trained(func() { x = g.plain("score", x, s.classes, false) })
		g.classify(g.view("last", x, s.classes))
		return
	}
	if d.Tied {
		x = g.tied("lm_head", x, s.vocabulary, false)
	} else {
		x = g.linear("lm_head", x, s.vocabulary, d.BiasHead)
	}
	if d.SoftCap {
		x = g.scale("softcap.mul", g.unary(models.Tanh, "softcap.tanh", g.scale("softcap.div", x)))
	}
	g.crossEntropy("loss", x, second)
}

// words looks up the table of tokens.
func (d *Decoder) words(g *graph, s settings) int {
	width := d.Width
	if d.Outer > 0 {
		width = d.Outer
	}
	x := g.embedding("model.embed_tokens", data, s.vocabulary, width)
	if d.Masks > 0 {
		g.keeping(x, models.Keeps{Whole: d.Masks * d.Depth})
	}
	if d.Outer > 0 {
		x = g.linear("model.project_in", x, d.Width, false)
	}
	return x
}
