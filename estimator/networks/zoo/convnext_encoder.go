package zoo

import (
	"fmt"

	"carma/configs/models"
)

// ConvNeXtEncoder is a ConvNeXt, or ConvNeXt V2 (arXiv 2301.00808), as the transformers
// library builds it: sums are not in place.
type ConvNeXtEncoder struct {
	Name           string
	Depths, Widths []int64 // of each stage
	Image, Patch   int64
	Channels       int64
	Activation     string
	Scaled         bool // a block's output is multiplied by learned numbers
	Response       bool // channels are normed by their response over the image (V2)
	SkipPath       bool // blocks are left out at random, but the first

	Head    string
	Classes int64
}

// Config is the training of an encoder with its head, by default with a batch of 1
// and images as the model has them.
func (c *ConvNeXtEncoder) Config(o models.Overrides) (*models.Config, error) {
	return entry{name: c.Name, kind: models.Conv, batch: 1, size: settings{image: c.Image}, build: c.build}.headed(c.Head, c.Classes).config("", o)
}

func (c *ConvNeXtEncoder) build(g *graph, s settings) {
	g.photo(c.Channels, s)
	x := g.conv("embeddings.patch_embeddings", data, window{out: c.Widths[0], kernel: c.Patch, stride: c.Patch, bias: true})
	x = g.layerNorm2d("embeddings.layernorm", x)
	for stage, depth := range c.Depths {
		leave := g.module(fmt.Sprintf("encoder.stages.%d", stage))
		if stage > 0 {
			x = g.layerNorm2d("downsampling_layer.0", x)
			x = g.conv("downsampling_layer.1", x, window{out: c.Widths[stage], kernel: 2, stride: 2, bias: true})
		}
		for i := range depth {
			x = c.block(g, fmt.Sprintf("layers.%d", i), x, c.SkipPath && (stage > 0 || i > 0))
		}
		leave()
	}
	width := g.shape(x)[0]
	pooled := func() int { return g.layerNorm("layernorm", g.flatten(g.mean("pooler", x))) }
	if c.Head == BaseModel {
		g.unused(func() { pooled() })
		g.loss("loss", g.op(models.Mean, "mean", []int64{width}, x))
		return
	}
	g.newClasses("classifier", pooled(), s)
}

func (c *ConvNeXtEncoder) block(g *graph, name string, in int, skipped bool) int {
	defer g.startBlock(name)()
	width := g.shape(in)[0]
	x := g.conv("dwconv", in, window{out: width, kernel: 7, pad: 3, groups: width, bias: true})
	x = g.layerNorm("layernorm", g.channelsLast(x))
	x = g.unary(c.Activation, "act", g.linear("pwconv1", x, 4*width, true))
	if c.Response {
		x = g.responseNorm("grn", x)
	}
	x = g.linear("pwconv2", x, width, true)
	if c.Scaled {
		x = g.weighted("layer_scale_parameter", x, width)
	}
	x = g.channelsFirst(x)
	if skipped {
		x = g.skip("drop_path", g.scale("drop_path.div", x))
	}
	return g.plus("add", in, x)
}

// responseNorm multiplies each channel by its norm over the image, relative to those of
// the others. Under autocast norms have 32 bits, and so has all that follows.
func (g *graph) responseNorm(name string, in int) int {
	defer g.module(name)()
	width := g.last(in)
	norm := g.keeping(g.op(models.RMSNorm, "norm", []int64{width}, in), models.Keeps{Inputs: []int{0}, Output: true})
	x := g.weighted("weight", g.times("mul", in, norm), width)
	return g.plus("add", g.biased("bias", x), in)
}
