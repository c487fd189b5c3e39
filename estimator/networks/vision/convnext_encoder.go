package vision

import (
	"fmt"

	"carma/configs/models"
	"carma/estimator/networks/graph"
)

// ConvNeXtEncoder is a ConvNeXt, or ConvNeXt V2 (arXiv 2301.00808), as built by the
// transformers library: additions are not in place.
type ConvNeXtEncoder struct {
	Name           string
	Depths, Widths []int64 // of each stage
	Image, Patch   int64
	Channels       int64
	Activation     string
	Scaled         bool // a block's output is multiplied by learned numbers
	Response       bool // channels are normed by their response over the image (V2)
	SkipPath       bool // blocks except the first are randomly dropped

	Head    string
	Classes int64
}

// Config returns the training of an encoder with its head, by default with a batch of 1
// and images as the model has them.
func (c *ConvNeXtEncoder) Config(o models.Overrides) (*models.Config, error) {
	return graph.Network{Name: c.Name, Kind: models.Conv, Batch: 1, Size: graph.Sizes{Image: c.Image}, Build: c.build}.Headed(c.Head, c.Classes).Config("", o)
}

func (c *ConvNeXtEncoder) build(g *graph.Graph, s graph.Sizes) {
	g.Photo(c.Channels, s)
	x := g.Conv("embeddings.patch_embeddings", graph.Data, graph.Window{Out: c.Widths[0], Kernel: c.Patch, Stride: c.Patch, Bias: true})
	x = g.LayerNorm2d("embeddings.layernorm", x)
	for stage, depth := range c.Depths {
		leave := g.Module(fmt.Sprintf("encoder.stages.%d", stage))
		if stage > 0 {
			x = g.LayerNorm2d("downsampling_layer.0", x)
			x = g.Conv("downsampling_layer.1", x, graph.Window{Out: c.Widths[stage], Kernel: 2, Stride: 2, Bias: true})
		}
		for i := range depth {
			x = c.block(g, fmt.Sprintf("layers.%d", i), x, c.SkipPath && (stage > 0 || i > 0))
		}
		leave()
	}
	width := g.Shape(x)[0]
	pooled := func() int { return g.LayerNorm("layernorm", g.Flatten(g.Mean("pooler", x))) }
	if c.Head == graph.BaseModel {
		g.Unused(func() { pooled() })
		g.Loss("loss", g.Op(models.Mean, "mean", []int64{width}, x))
		return
	}
	g.NewClasses("classifier", pooled(), s)
}

func (c *ConvNeXtEncoder) block(g *graph.Graph, name string, in int, skipped bool) int {
	defer g.StartBlock(name)()
	width := g.Shape(in)[0]
	x := g.Conv("dwconv", in, graph.Window{Out: width, Kernel: 7, Pad: 3, Groups: width, Bias: true})
	x = g.LayerNorm("layernorm", g.ChannelsLast(x))
	x = g.Unary(c.Activation, "act", g.Linear("pwconv1", x, 4*width, true))
	if c.Response {
		x = responseNorm(g, "grn", x)
	}
	x = g.Linear("pwconv2", x, width, true)
	if c.Scaled {
		x = g.Weighted("layer_scale_parameter", x, width)
	}
	x = g.ChannelsFirst(x)
	if skipped {
		x = g.Skip("drop_path", g.Scale("drop_path.div", x))
	}
	return g.Plus("add", in, x)
}

// responseNorm multiplies each channel by its norm over the image, relative to the other
// channels' norms. Under autocast the norms and everything after them have 32 bits.
func responseNorm(g *graph.Graph, name string, in int) int {
	defer g.Module(name)()
	width := g.Last(in)
	norm := g.Keeping(g.Op(models.RMSNorm, "norm", []int64{width}, in), models.Keeps{Inputs: []int{0}, Output: true})
	x := g.Weighted("weight", g.Times("mul", in, norm), width)
	return g.Plus("add", g.Biased("bias", x), in)
}
