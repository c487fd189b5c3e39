package zoo

import "carma/configs/models"

// Towers are an encoder of texts and one of images whose vectors are compared (CLIP,
// SigLIP).
type Towers struct {
	Name  string
	Text  TextEncoder
	Image ImageEncoder
	// Projection is the width that both vectors are projected to, without bias; 0: only
	// the text's is projected, with a bias (SigLIP).
	Projection int64
	Scalars    int64 // learned numbers of the comparison
}

// Config is the training of both encoders on pairs, by default with one pair and the
// longest texts.
func (t *Towers) Config(o models.Overrides) (*models.Config, error) {
	pairs := int64(max(o.Batch, 1))
	e := entry{
		name: t.Name, kind: models.Transformer, batch: 1, longest: t.Text.Longest,
		size:  settings{sequence: t.Text.Longest, vocabulary: t.Text.Vocabulary, image: t.Image.Image},
		build: func(g *graph, s settings) { t.build(g, s, pairs) },
	}
	return e.config("", o)
}

func (t *Towers) build(g *graph, s settings, pairs int64) {
	g.input(8, s.sequence)
	g.input(0, t.Image.Channels, s.image, s.image)
	leave := g.module("vision_model")
	tokens := t.Image.tokens(g, second, s.image)
	image := t.Image.pooled(g, tokens)
	if t.Projection > 0 {
		image = g.plain("visual_projection", image, t.Projection, false)
	}
	leave()
	leave = g.module("text_model")
	text := g.view("pooled", t.Text.tokens(g, data, s), t.Text.Width)
	if t.Projection > 0 {
		text = g.plain("text_projection", text, t.Projection, false)
	} else {
		text = g.plain("head", text, t.Image.Width, true)
	}
	leave()
	logits := g.op(models.MatMul, "logits_per_text", []int64{pairs}, text, image)
	logits = g.unary(models.Mul, "scaled", logits)
	g.layers[logits].Params = []int64{t.Scalars}
	g.layers[logits].Frozen = g.rank > 0
	g.loss("loss", logits)
}
