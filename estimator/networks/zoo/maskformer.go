package zoo

import (
	"fmt"

	"carma/configs/models"
)

// InstanceSegmentation is the head of a MaskFormer; see [MaskedLM].
const InstanceSegmentation = "instance-segmentation"

// MaskFormer finds masks by learned queries over the coarsest features of an image (arXiv
// 2107.06278), as the transformers library builds it over a Swin or a residual network.
type MaskFormer struct {
	Name                string
	Swin                *SwinEncoder   // the network below, or
	ResNet              *ResNetEncoder // this one
	Features, MaskWidth int64          // channels of the pyramid, and of what masks are made of
	Queries             DETR           // its decoder counts

	Head    string
	Classes int64
}

// Config is the training of the model, by default with a batch of 1.
func (m *MaskFormer) Config(o models.Overrides) (*models.Config, error) {
	e := entry{name: m.Name, kind: models.Transformer, batch: 1, size: settings{image: maskImage, classes: m.Classes}, build: m.build}
	return e.config("", o)
}

func (m *MaskFormer) build(g *graph, s settings) {
	leave := g.module("pixel_level_module.encoder")
	maps := m.maps(g, s)
	leave()
	pixels := m.pyramid(g, maps)
	d, image := &m.Queries, maps[len(maps)-1]
	leave = g.module("transformer_module")
	size := g.shape(image)
	if size[0] != d.Width {
		image = g.conv("input_projection", image, window{out: d.Width, bias: true})
	}
	n := size[1] * size[2]
	image = g.view("tokens", image, n, d.Width)
	queries, places := g.repeated("queries_embedder", d.Queries, d.Width), g.constant("position_embedder", n, d.Width)
	y := g.constant("queries", d.Queries, d.Width)
	for i := range d.Decoder.Depth {
		y = d.decode(g, fmt.Sprintf("decoder.layers.%d", i), y, queries, image, places)
	}
	y = g.layerNorm("decoder.layernorm", y)
	leave()
	var classes int
	g.trained(func() { classes = g.plain("class_predictor", y, s.classes+1, true) })
	y = g.maskEmbedder("mask_embedder", y, d.Width, m.MaskWidth)
	masks := g.op(models.MatMul, "masks", []int64{d.Queries, g.shape(pixels)[1], g.shape(pixels)[2]}, y, pixels)
	m.losses(g, masks, classes, s)
}

// maps are the features of the network below, the finest first.
func (m *MaskFormer) maps(g *graph, s settings) []int {
	channels := int64(0)
	if m.Swin != nil {
		channels, m.Swin.Single = m.Swin.Channels, true
	} else {
		channels = m.ResNet.Channels
	}
	g.input(0, channels, s.image, s.image)
	g.input(8, s.image, s.image)              // which pixels are of the photo
	g.input(4, maskObjects, s.image, s.image) // masks to learn
	if m.Swin != nil {
		return m.Swin.maps(g)
	}
	return m.ResNet.stages(g)[1:]
}

// pyramid adds the coarse features to the finer ones, and makes of the finest what masks
// are made of.
func (m *MaskFormer) pyramid(g *graph, maps []int) int {
	defer g.module("pixel_level_module.decoder")()
	block := func(name string, in int) int {
		x := g.groupNorm(name+".1", g.conv(name+".0", in, w3(m.Features)))
		return g.inPlace(models.ReLU, name+".2", x)
	}
	x := block("fpn.stem", maps[len(maps)-1])
	for i := len(maps) - 2; i >= 0; i-- {
		name := fmt.Sprintf("fpn.layers.%d", len(maps)-2-i)
		left := g.groupNorm(name+".proj.1", g.conv(name+".proj.0", maps[i], window{out: m.Features}))
		x = block(name+".block", g.plusInPlace(name+".add", g.op(models.Upsample, name+".interpolate", g.shape(left), x), left))
	}
	return g.conv("mask_projection", x, w3Biased(m.MaskWidth))
}

// losses compare the masks of the objects with theirs, at the size of the image. The
// library first finds the query for each object, image by image.
func (m *MaskFormer) losses(g *graph, masks, classes int, s settings) {
	area := g.shape(masks)[1] * g.shape(masks)[2]
	costs := g.constant("costs", 6, m.Queries.Queries, area) // numbers for each pixel of each query's mask
	g.layers[costs].Whole = true
	g.maskLosses(masks, s.image)
	g.total(g.crossEntropy("loss_cross_entropy", classes, second))
}

// maskLosses are the focal and the dice loss of the masks of an image's objects, in single
// operations at the size of the image. Each keeps what its gradient needs.
func (g *graph) maskLosses(masks int, side int64) {
	size := []int64{maskObjects, side, side}
	x := g.op(models.Upsample, "interpolate", size, masks)
	targets, others, weights := g.constant("targets", size...), g.constant("1-targets", size...), g.constant("alpha_t", size...)
	p := g.unary(models.Sigmoid, "p", x)
	entropy := g.keeping(g.op(models.OtherLayer, "ce_loss", size, x, targets), models.Keeps{Inputs: []int{0, 1}})
	a := g.keeping(g.times("p_t.1", p, targets), models.Keeps{Inputs: []int{1}})
	b := g.keeping(g.times("p_t.2", g.unary(models.OtherLayer, "1-p", p), others), models.Keeps{Inputs: []int{1}})
	loss := g.times("loss", entropy, g.unary(models.Pow, "square", g.unary(models.OtherLayer, "1-p_t", g.plus("p_t", a, b))))
	loss = g.keeping(g.times("weighted", loss, weights), models.Keeps{Inputs: []int{1}})
	g.keeping(g.loss("loss_mask", loss), models.Keeps{})
	dice := g.keeping(g.times("dice", g.unary(models.Sigmoid, "probs", x), targets), models.Keeps{Inputs: []int{1}})
	g.keeping(g.loss("loss_dice", dice), models.Keeps{})
}
