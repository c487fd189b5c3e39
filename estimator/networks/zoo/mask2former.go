package zoo

import (
	"fmt"

	"carma/configs/models"
)

// Mask2Former finds masks by learned queries over features of several sizes (arXiv
// 2112.01527), as the transformers library builds it over a Swin.
type Mask2Former struct {
	Name                  string
	Backbone              *SwinEncoder
	Features, MaskWidth   int64       // channels of the features, and of those that masks are made of
	Encoder, Decoder      QueryLayers // of the features, and of the queries
	Width, Queries        int64
	Activation            string
	Dropout, NormFirst    bool
	Projected             bool // features are projected for the decoder although their width fits
	EachLayer             bool // the loss takes the output of each layer of the decoder
	Points, PointsSampled int64
	Coarse                bool // masks have an eighth of the image's side, else a quarter

	Head    string
	Classes int64
}

// UniversalSegmentation is the head of a Mask2Former; see [MaskedLM].
const UniversalSegmentation = "universal-segmentation"

const (
	// maskImage is the default side of images in pixels, that of the library's script.
	maskImage = 512
	// maskObjects is how many objects an image has, as many as on average in COCO.
	maskObjects = 7
	// maskLevels and maskPoints are how many sizes of features a query looks at, and at
	// how many points in each.
	maskLevels, maskPoints = 3, 4
)

// Config is the training of the model, by default with a batch of 1.
func (m *Mask2Former) Config(o models.Overrides) (*models.Config, error) {
	e := entry{name: m.Name, kind: models.Transformer, batch: 1, size: settings{image: maskImage, classes: m.Classes}, build: m.build}
	return e.config("", o)
}

func (m *Mask2Former) build(g *graph, s settings) {
	g.input(0, m.Backbone.Channels, s.image, s.image)
	g.input(8, s.image, s.image)              // which pixels are of the photo
	g.input(4, maskObjects, s.image, s.image) // masks to learn
	leave := g.module("pixel_level_module.encoder")
	maps := m.Backbone.maps(g)
	leave()
	if len(maps) != maskLevels+1 {
		g.fail("a network of %d stages; it has %d", len(maps), maskLevels+1)
		return
	}
	leave = g.module("pixel_level_module.decoder")
	levels, pixels := m.pixels(g, maps)
	leave()
	masks, tokens := m.decode(g, levels, pixels)
	m.losses(g, masks, tokens, s)
}

// pixels are features of three sizes, the coarsest first, which see each other, and those
// that masks are made of.
func (m *Mask2Former) pixels(g *graph, maps []int) (levels []int, fine int) {
	var parts, places []int
	var sizes [][]int64
	table := g.table("level_embed", maskLevels, m.Features)
	for i := range maskLevels {
		x := m.normed(g, fmt.Sprintf("input_projections.%d", i), maps[len(maps)-1-i], window{out: m.Features, bias: true})
		size := g.shape(x)
		n := size[1] * size[2]
		sizes = append(sizes, size)
		parts = append(parts, g.view("tokens", x, n, m.Features))
		places = append(places, g.op(models.Add, "level_pos", []int64{n, m.Features}, g.constant("position_embedding", n, m.Features), table))
	}
	x, at := g.concat("input_embeds_flat", parts...), g.concat("level_pos_embed_flat", places...)
	for i := range m.Encoder.Depth {
		x = m.encode(g, fmt.Sprintf("encoder.layers.%d", i), x, at, sizes)
	}
	for i, size := range sizes {
		levels = append(levels, g.view(fmt.Sprintf("level.%d", i), x, size...))
	}
	fine = levels[len(levels)-1]
	if !m.Coarse {
		now := m.normed(g, "adapter_1", maps[0], window{out: m.Features})
		now = g.plus("add", now, g.op(models.Upsample, "interpolate", g.shape(now), fine))
		fine = g.unary(models.ReLU, "layer_1.2", m.normed(g, "layer_1", now, window{out: m.Features, kernel: 3, pad: 1}))
	}
	return levels, g.conv("mask_projection", fine, window{out: m.MaskWidth, bias: true})
}

func (m *Mask2Former) normed(g *graph, name string, in int, w window) int {
	return g.groupNorm(name+".1", g.conv(name+".0", in, w))
}

// encode is one layer of the pixel decoder. Each token looks at some points of each level
// (deformable attention, arXiv 2010.04159).
func (m *Mask2Former) encode(g *graph, name string, x, at int, sizes [][]int64) int {
	defer g.startBlock(name)()
	y := g.deformable("self_attn", g.plus("add_positions", x, at), x, m.Encoder.Heads, sizes)
	x = m.sum(g, "self_attn_layer_norm", x, y)
	y = g.dropIf(m.Dropout, "dropout", g.unary(models.ReLU, "activation_fn", g.linear("fc1", x, m.Encoder.Inner, true)))
	return m.sum(g, "final_layer_norm", x, g.linear("fc2", y, m.Features, true))
}

// sum adds a part's output to its input, and norms that.
func (m *Mask2Former) sum(g *graph, norm string, in, x int) int {
	return g.layerNorm(norm, g.plus("add", in, g.dropIf(m.Dropout, "dropout", x)))
}

// deformable is attention of tokens to points of features of several sizes. The points
// and their weights are made of the tokens alone. It takes as much as all values at all
// points: they are put together before they are weighed.
func (g *graph) deformable(name string, query, source int, heads int64, sizes [][]int64) int {
	defer g.module(name)()
	n, width := g.shape(query)[0], g.last(source)
	points := int64(len(sizes)) * maskPoints
	value := g.linear("value_proj", source, width, true)
	value = g.copyOf("masked_fill", value, g.shape(value)...)
	offsets := g.linear("sampling_offsets", query, heads*points*2, true)
	weights := g.unary(models.Softmax, "softmax", g.linear("attention_weights", query, heads*points, true))
	// Where the points are has 32 bits, as the places of the tokens have.
	places := g.op(models.Add, "sampling_locations", g.shape(offsets), g.scale("div", offsets), g.constant("reference_points", 1))
	grids := g.unary(models.Copy, "sampling_grids", g.unary(models.Copy, "times", places))
	var parts []int
	for i, size := range sizes {
		area := size[1] * size[2]
		v := g.copyOf(fmt.Sprintf("value.%d", i), value, width, area)
		grid := g.copyOf(fmt.Sprintf("grid.%d", i), grids, heads, n, maskPoints*2)
		x := g.op(models.OtherLayer, fmt.Sprintf("grid_sample.%d", i), []int64{width, n, maskPoints}, v, grid)
		parts = append(parts, g.keeping(x, models.Keeps{Wide: []int{0, 1}}))
	}
	all := g.op(models.Concat, "stack", []int64{width, n, points}, parts...)
	weights = g.copyOf("weights", weights, heads, n, points)
	x := g.times("weighed", all, weights)
	x = g.op(models.Mean, "sum", []int64{width, n}, x)
	x = g.copyOf("contiguous", x, n, width)
	return g.linear("output_proj", x, width, true)
}
