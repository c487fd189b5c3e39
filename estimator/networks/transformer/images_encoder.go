package transformer

import (
	"fmt"

	"carma/configs/models"
	"carma/estimator/networks/graph"
)

// ImageEncoder is a Transformer on the patches of an image, as built by the transformers
// library.
type ImageEncoder struct {
	Name string
	Block
	Depth int64
	// Image is the side of the images for which the table of positions is made. Patch is the
	// side of a patch.
	Image, Patch, Channels int64
	PlainPatch             bool  // the projection of the patches has no bias
	ClassToken             bool  // a learned token before the patches' tokens
	Distilled              bool  // another learned token after it (DeiT)
	NoPositions            bool  // no table of positions (BEiT, DINOv3)
	MaskToken              bool  // a learned token that this training does not use
	Registers              int64 // number of additional learned tokens
	EntryNorm              bool  // a norm before the blocks (CLIP)
	FinalNorm              bool  // a norm after the blocks
	PathRises              bool  // with SkipPath: nothing is dropped in the first block
	MeanNorm               bool  // a norm of the mean from which the classes are computed (BEiT)
	Pooler                 bool  // the bare model has a dense layer over the first token
	Probe                  bool  // the bare model ends with attention by one learned token (SigLIP)
	LastNorm               bool  // the bare model norms the vector of the image (CLIP)
	Beside                 bool  // a model with classes also has the bare model's end, which the classes do not use

	// Shared is the common bias of all blocks, or nil. Its Side is counted in patches of the
	// model's own image size.
	Shared *PatchBias

	Head    string
	Classes int64
	Pool    Pool
}

// Pool is the vector of an image from which its classes are computed.
type Pool string

// The pools.
const (
	PoolFirst Pool = "first"      // the first token
	PoolMean  Pool = "mean"       // the mean of the patches
	PoolBoth  Pool = "first+mean" // the first token and the mean, concatenated (DINOv2)
)

// Config returns the training of an encoder with its head, by default with a batch of 1
// and images as the model has them.
func (v *ImageEncoder) Config(o models.Overrides) (*models.Config, error) {
	return graph.Network{Name: v.Name, Kind: models.Transformer, Batch: 1, Size: graph.Sizes{Image: v.Image}, Build: v.build}.Headed(v.Head, v.Classes).Config("", o)
}

func (v *ImageEncoder) build(g *graph.Graph, s graph.Sizes) {
	g.Photo(v.Channels, s)
	x := v.tokens(g, graph.Data, s.Image)
	if v.Head == graph.BaseModel {
		g.Unused(func() { v.pooled(g, x) })
		g.Loss("loss", g.Op(models.Mean, "mean", []int64{v.Width}, x))
		return
	}
	if v.Beside {
		g.Unused(func() { v.pooled(g, x) })
	}
	mean := func() int { return g.Op(models.Mean, "mean", []int64{v.Width}, x) }
	first := func() int { return g.View("first", x, v.Width) }
	switch {
	case v.MeanNorm:
		x = v.pooled(g, x)
	case v.Pool == PoolBoth:
		x = g.Op(models.Concat, "concat", []int64{2 * v.Width}, first(), mean())
	case v.Pool == PoolMean:
		x = mean()
	default:
		x = first()
	}
	g.NewClasses("classifier", x, s)
}

// tokens adds the encoder of an image up to its output tokens.
func (v *ImageEncoder) tokens(g *graph.Graph, pixels int, image int64) int {
	x := v.patches(g, pixels, image)
	for _, b := range []*PatchBias{v.PatchBias, v.Shared} {
		if b != nil {
			b.Side = max(image/v.Patch, 1)
		}
	}
	if v.EntryNorm {
		x = v.Norm(g, "pre_layrnorm", x)
	}
	with := beside{}
	if v.Shared != nil {
		with.bias = v.Shared.scores(g, v.Heads)
	}
	for i := range v.Depth {
		b := v.Block
		b.SkipPath = v.SkipPath && (i > 0 || !v.PathRises)
		x = b.blockBeside(g, fmt.Sprintf("encoder.layer.%d", i), x, i, with)
	}
	if v.FinalNorm {
		x = v.Norm(g, "layernorm", x)
	}
	return x
}

// patches cuts an image into tokens and adds their positions. The table of positions is
// made for the model's own image size; for another size it is interpolated.
func (v *ImageEncoder) patches(g *graph.Graph, pixels int, image int64) int {
	defer g.Module("embeddings")()
	x := g.Conv("patch_embeddings", pixels, graph.Window{Out: v.Width, Kernel: v.Patch, Stride: v.Patch, Bias: !v.PlainPatch})
	n, own := g.Shape(x)[1]*g.Shape(x)[2], (v.Image/v.Patch)*(v.Image/v.Patch)
	x = g.View("flatten", x, n, v.Width)
	if v.MaskToken {
		g.Table("mask_token", 1, v.Width)
	}
	var first []int
	if v.ClassToken {
		first = append(first, g.Table("cls_token", 1, v.Width))
	}
	if v.Distilled {
		first = append(first, g.Table("distillation_token", 1, v.Width))
	}
	own, n = own+int64(len(first)), n+int64(len(first))
	if len(first) > 0 {
		x = g.PerSample(g.Op(models.Concat, "concat", []int64{n, v.Width}, append(first, x)...))
	}
	if !v.NoPositions {
		positions := g.Table("position_embeddings", own, v.Width)
		if n != own {
			positions = g.CopyOf("interpolated", positions, n, v.Width)
		}
		x = g.Plus("add_positions", x, positions)
	}
	if v.Registers > 0 {
		x = g.PerSample(g.Op(models.Concat, "registers", []int64{n + v.Registers, v.Width}, x, g.Table("register_tokens", v.Registers, v.Width)))
	}
	return v.drop(g, "dropout", x)
}

// pooled adds one vector for each image.
func (v *ImageEncoder) pooled(g *graph.Graph, x int) int {
	switch {
	case v.Probe:
		return v.probe(g, x)
	case v.LastNorm:
		return v.Norm(g, "post_layernorm", g.View("first", x, v.Width))
	case v.MeanNorm:
		return v.Norm(g, "pooler.layernorm", g.Op(models.Mean, "mean", []int64{v.Width}, x))
	case v.Pooler:
		return g.Unary(models.Tanh, "pooler.activation", g.Linear("pooler.dense", g.View("first", x, v.Width), v.Width, true))
	}
	return g.View("first", x, v.Width)
}

// probe adds attention of one learned token to all others, and a feed-forward part.
func (v *ImageEncoder) probe(g *graph.Graph, x int) int {
	defer g.Module("head")()
	token := g.PerSample(g.Table("probe", 1, v.Width))
	q, k, val := g.Plain("q", token, v.Width, true), g.Plain("k", x, v.Width, true), g.Plain("v", x, v.Width, true)
	a := g.Plain("out_proj", g.Attend("attention", q, k, val, v.Heads), v.Width, true)
	a = g.Plus("add", a, v.dense(g, v.Norm(g, "layernorm", a), v.Inner))
	return g.View("pooled", a, v.Width)
}
