package zoo

import (
	"fmt"

	"carma/configs/models"
)

// More heads; see [MaskedLM].
const (
	ImageClassification = "image-classification"
	Contrastive         = "contrastive" // of texts and images (CLIP)
)

// ImageEncoder is a Transformer of the patches of an image, as the transformers library
// builds it.
type ImageEncoder struct {
	Name string
	Block
	Depth int64
	// Image is the side of the images that the table of positions is for. Patch is that
	// of a patch.
	Image, Patch, Channels int64
	PlainPatch             bool  // the projection of the patches has no bias
	ClassToken             bool  // a learned token before those of the patches
	MaskToken              bool  // a learned token that this training does not use
	Registers              int64 // further learned tokens
	EntryNorm              bool  // a norm before the blocks (CLIP)
	FinalNorm              bool  // a norm after them
	Pooler                 bool  // the bare model has a dense layer over the first token
	Probe                  bool  // the bare model ends with attention by one learned token (SigLIP)
	LastNorm               bool  // the bare model norms the vector of the image (CLIP)
	Beside                 bool  // a model with classes has the bare model's end too, which they do not take

	Head    string
	Classes int64
	Pool    Pool
}

// Pool is the vector of an image that its classes come from.
type Pool string

// Pools.
const (
	PoolFirst Pool = "first"      // of the first token
	PoolMean  Pool = "mean"       // the mean of the patches
	PoolBoth  Pool = "first+mean" // one after the other (DINOv2)
)

// Config is the training of an encoder with its head, by default with a batch of 1
// and images as the model has them.
func (v *ImageEncoder) Config(o models.Overrides) (*models.Config, error) {
	e := entry{name: v.Name, kind: models.Transformer, batch: 1, size: settings{image: v.Image}, build: v.build}
	if HasClasses(v.Head) {
		e.size.classes = v.Classes
	}
	return e.config("", o)
}

func (v *ImageEncoder) build(g *graph, s settings) {
	g.photo(v.Channels, s)
	x := v.tokens(g, data, s.image)
	if v.Head == BaseModel {
		g.unused(func() { v.pooled(g, x) })
		g.loss("loss", g.op(models.Mean, "mean", []int64{v.Width}, x))
		return
	}
	if v.Beside {
		g.unused(func() { v.pooled(g, x) })
	}
	first, mean := g.view("first", x, v.Width), x
	if v.Pool != PoolFirst {
		mean = g.op(models.Mean, "mean", []int64{v.Width}, x)
	}
	switch v.Pool {
	case PoolBoth:
		x = g.op(models.Concat, "concat", []int64{2 * v.Width}, first, mean)
	case PoolMean:
		x = mean
	default:
		x = first
	}
	g.trained(func() { x = g.plain("classifier", x, s.classes, true) })
	g.classify(x)
}

// tokens adds the encoder of an image up to its last tokens.
func (v *ImageEncoder) tokens(g *graph, pixels int, image int64) int {
	x := v.patches(g, pixels, image)
	if v.EntryNorm {
		x = v.norm(g, "pre_layrnorm", x)
	}
	for i := range v.Depth {
		x = v.block(g, fmt.Sprintf("encoder.layer.%d", i), x, i)
	}
	if v.FinalNorm {
		x = v.norm(g, "layernorm", x)
	}
	return x
}

// patches cuts an image into tokens and adds their positions. The table of positions is
// that of the model's own image size; for another one it is interpolated.
func (v *ImageEncoder) patches(g *graph, pixels int, image int64) int {
	defer g.module("embeddings")()
	x := g.conv("patch_embeddings", pixels, window{out: v.Width, kernel: v.Patch, stride: v.Patch, bias: !v.PlainPatch})
	n, own := g.shape(x)[1]*g.shape(x)[2], (v.Image/v.Patch)*(v.Image/v.Patch)
	x = g.view("flatten", x, n, v.Width)
	if v.ClassToken {
		own++
		n++
		x = g.op(models.Concat, "concat", []int64{n, v.Width}, g.table("cls_token", 1, v.Width), x)
		g.layers[x].Whole = false
	}
	if v.MaskToken {
		g.table("mask_token", 1, v.Width)
	}
	positions := g.table("position_embeddings", own, v.Width)
	if n != own {
		positions = g.copyOf("interpolated", positions, n, v.Width)
	}
	x = g.plus("add_positions", x, positions)
	if v.Registers > 0 {
		x = g.op(models.Concat, "registers", []int64{n + v.Registers, v.Width}, x, g.table("register_tokens", v.Registers, v.Width))
		g.layers[x].Whole = false
	}
	return v.drop(g, "dropout", x)
}

// pooled is one vector for each image.
func (v *ImageEncoder) pooled(g *graph, x int) int {
	switch {
	case v.Probe:
		return v.probe(g, x)
	case v.LastNorm:
		return v.norm(g, "post_layernorm", g.view("first", x, v.Width))
	case v.Pooler:
		return g.unary(models.Tanh, "pooler.activation", g.linear("pooler.dense", g.view("first", x, v.Width), v.Width, true))
	}
	return g.view("first", x, v.Width)
}

// probe is attention of one learned token to all others, and a feed-forward part.
func (v *ImageEncoder) probe(g *graph, x int) int {
	defer g.module("head")()
	token := g.table("probe", 1, v.Width)
	g.layers[token].Whole = false
	q, k, val := g.plain("q", token, v.Width, true), g.plain("k", x, v.Width, true), g.plain("v", x, v.Width, true)
	a := g.plain("out_proj", g.attend("attention", q, k, val, v.Heads), v.Width, true)
	a = g.plus("add", a, v.dense(g, v.norm(g, "layernorm", a), v.Inner))
	return g.view("pooled", a, v.Width)
}
