package transformer

import (
	"carma/configs/models"
	"carma/estimator/networks/graph"
)

// Towers contains an encoder of texts and an encoder of images whose output vectors are
// compared (CLIP, SigLIP).
type Towers struct {
	Name  string
	Text  TextEncoder
	Image ImageEncoder
	// Projection is the width to which both vectors are projected, without bias. If it is 0,
	// only the text's vector is projected, with a bias (SigLIP).
	Projection int64
	Scalars    int64 // learned numbers of the comparison
}

// Config returns the training of both encoders on pairs, by default with one pair and the
// longest texts.
func (t *Towers) Config(o models.Overrides) (*models.Config, error) {
	pairs := int64(max(o.Batch, 1))
	e := graph.Network{
		Name: t.Name, Kind: models.Transformer, Batch: 1, Longest: t.Text.Longest,
		Size:  graph.Sizes{Sequence: t.Text.Longest, Vocabulary: t.Text.Vocabulary, Image: t.Image.Image},
		Build: func(g *graph.Graph, s graph.Sizes) { t.build(g, s, pairs) },
	}
	return e.Config("", o)
}

func (t *Towers) build(g *graph.Graph, s graph.Sizes, pairs int64) {
	g.Input(8, s.Sequence)
	g.Input(0, t.Image.Channels, s.Image, s.Image)
	leave := g.Module("vision_model")
	tokens := t.Image.tokens(g, graph.Second, s.Image)
	image := t.Image.pooled(g, tokens)
	if t.Projection > 0 {
		image = g.Plain("visual_projection", image, t.Projection, false)
	}
	leave()
	leave = g.Module("text_model")
	text := g.View("pooled", t.Text.tokens(g, graph.Data, s), t.Text.Width)
	if t.Projection > 0 {
		text = g.Plain("text_projection", text, t.Projection, false)
	} else {
		text = g.Plain("head", text, t.Image.Width, true)
	}
	leave()
	logits := g.Op(models.MatMul, "logits_per_text", []int64{pairs}, text, image)
	logits = g.Unary(models.Mul, "scaled", logits)
	g.Layers[logits].Params = []int64{t.Scalars}
	g.Layers[logits].Frozen = g.Rank > 0
	g.Loss("loss", logits)
}
