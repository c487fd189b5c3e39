package detection

import (
	"fmt"

	"carma/configs/models"
	"carma/estimator/networks/graph"
	"carma/estimator/networks/transformer"
	"carma/estimator/networks/vision"
)

// MaskFormer finds masks by learned queries over the coarsest features of an image (arXiv
// 2107.06278), as built by the transformers library over a Swin or a residual network.
type MaskFormer struct {
	Name                string
	Swin                *transformer.SwinEncoder // the backbone, or
	ResNet              *vision.ResNetEncoder    // this backbone
	Features, MaskWidth int64                    // channels of the pyramid, and of the features for masks
	Queries             DETR                     // only its decoder is used

	Classes int64
}

// Config returns the training of the model, by default with a batch of 1.
func (m *MaskFormer) Config(o models.Overrides) (*models.Config, error) {
	e := graph.Network{Name: m.Name, Kind: models.Transformer, Batch: 1, Size: graph.Sizes{Image: maskImage, Classes: m.Classes}, Build: m.build}
	return e.Config("", o)
}

func (m *MaskFormer) build(g *graph.Graph, s graph.Sizes) {
	leave := g.Module("pixel_level_module.encoder")
	maps := m.maps(g, s)
	leave()
	pixels := m.pyramid(g, maps)
	d, image := &m.Queries, maps[len(maps)-1]
	leave = g.Module("transformer_module")
	size := g.Shape(image)
	if size[0] != d.Width {
		image = g.Conv("input_projection", image, graph.Window{Out: d.Width, Bias: true})
	}
	n := size[1] * size[2]
	image = g.View("tokens", image, n, d.Width)
	queries, places := repeated(g, "queries_embedder", d.Queries, d.Width), constant(g, "position_embedder", n, d.Width)
	y := constant(g, "queries", d.Queries, d.Width)
	for i := range d.Decoder.Depth {
		y = d.decode(g, fmt.Sprintf("decoder.layers.%d", i), y, queries, image, places)
	}
	y = g.LayerNorm("decoder.layernorm", y)
	leave()
	var classes int
	g.Trained(func() { classes = g.Plain("class_predictor", y, s.Classes+1, true) })
	y = maskEmbedder(g, "mask_embedder", y, d.Width, m.MaskWidth)
	masks := g.Op(models.MatMul, "masks", []int64{d.Queries, g.Shape(pixels)[1], g.Shape(pixels)[2]}, y, pixels)
	m.losses(g, masks, classes, s)
}

// maps adds the backbone and returns its features, the finest first.
func (m *MaskFormer) maps(g *graph.Graph, s graph.Sizes) []int {
	channels := int64(0)
	if m.Swin != nil {
		channels, m.Swin.Single = m.Swin.Channels, true
	} else {
		channels = m.ResNet.Channels
	}
	g.Input(0, channels, s.Image, s.Image)
	g.Input(8, s.Image, s.Image)              // which pixels belong to the photo
	g.Input(4, maskObjects, s.Image, s.Image) // target masks
	if m.Swin != nil {
		return m.Swin.Maps(g)
	}
	return m.ResNet.Stages(g)[1:]
}

// pyramid adds the coarse features to the finer ones, and computes from the finest the
// features for masks.
func (m *MaskFormer) pyramid(g *graph.Graph, maps []int) int {
	defer g.Module("pixel_level_module.decoder")()
	block := func(name string, in int) int {
		x := g.GroupNorm(name+".1", g.Conv(name+".0", in, graph.W3(m.Features)))
		return g.InPlace(models.ReLU, name+".2", x)
	}
	x := block("fpn.stem", maps[len(maps)-1])
	for i := len(maps) - 2; i >= 0; i-- {
		name := fmt.Sprintf("fpn.layers.%d", len(maps)-2-i)
		left := g.GroupNorm(name+".proj.1", g.Conv(name+".proj.0", maps[i], graph.Window{Out: m.Features}))
		x = block(name+".block", g.PlusInPlace(name+".add", g.Op(models.Upsample, name+".interpolate", g.Shape(left), x), left))
	}
	return g.Conv("mask_projection", x, graph.W3Biased(m.MaskWidth))
}

// losses compares the masks of the objects with the targets, at the size of the image.
// The library first finds the query for each object, image by image.
func (m *MaskFormer) losses(g *graph.Graph, masks, classes int, s graph.Sizes) {
	area := g.Shape(masks)[1] * g.Shape(masks)[2]
	costs := constant(g, "costs", 6, m.Queries.Queries, area) // numbers for each pixel of each query's mask
	g.Layers[costs].Whole = true
	maskLosses(g, masks, s.Image)
	g.Total(g.CrossEntropy("loss_cross_entropy", classes, graph.Second))
}

// maskLosses adds the focal and the dice loss of the masks of an image's objects, in
// single operations at the size of the image. Each operation keeps the tensors for its
// gradient.
func maskLosses(g *graph.Graph, masks int, side int64) {
	size := []int64{maskObjects, side, side}
	x := g.Op(models.Upsample, "interpolate", size, masks)
	targets, others, weights := constant(g, "targets", size...), constant(g, "1-targets", size...), constant(g, "alpha_t", size...)
	p := g.Unary(models.Sigmoid, "p", x)
	entropy := g.Keeping(g.Op(models.OtherLayer, "ce_loss", size, x, targets), models.Keeps{Inputs: []int{0, 1}})
	a := g.Keeping(g.Times("p_t.1", p, targets), models.Keeps{Inputs: []int{1}})
	b := g.Keeping(g.Times("p_t.2", g.Unary(models.OtherLayer, "1-p", p), others), models.Keeps{Inputs: []int{1}})
	loss := g.Times("loss", entropy, g.Unary(models.Pow, "square", g.Unary(models.OtherLayer, "1-p_t", g.Plus("p_t", a, b))))
	loss = g.Keeping(g.Times("weighted", loss, weights), models.Keeps{Inputs: []int{1}})
	g.Keeping(g.Loss("loss_mask", loss), models.Keeps{})
	dice := g.Keeping(g.Times("dice", g.Unary(models.Sigmoid, "probs", x), targets), models.Keeps{Inputs: []int{1}})
	g.Keeping(g.Loss("loss_dice", dice), models.Keeps{})
}
