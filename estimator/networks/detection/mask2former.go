package detection

import (
	"fmt"

	"carma/configs/models"
	"carma/estimator/networks/graph"
	"carma/estimator/networks/transformer"
)

// Mask2Former finds masks by learned queries over features of several sizes (arXiv
// 2112.01527), as built by the transformers library over a Swin.
type Mask2Former struct {
	Name                  string
	Backbone              *transformer.SwinEncoder
	Features, MaskWidth   int64       // channels of the features, and of the features for masks
	Encoder, Decoder      QueryLayers // layers for the features, and for the queries
	Width, Queries        int64
	Activation            string
	Dropout, NormFirst    bool
	Projected             bool // features are projected for the decoder even if their width fits
	EachLayer             bool // the loss uses the output of each decoder layer
	Points, PointsSampled int64
	Coarse                bool // masks have an eighth of the image's side, otherwise a quarter

	Classes int64
}

const (
	// maskImage is the default side of images in pixels, as in the library's script.
	maskImage = 512
	// maskObjects is the number of objects in an image, the average in COCO.
	maskObjects = 7
	// maskLevels is the number of feature sizes that a query samples, maskPoints the number
	// of points in each.
	maskLevels, maskPoints = 3, 4
)

// Config returns the training of the model, by default with a batch of 1.
func (m *Mask2Former) Config(o models.Overrides) (*models.Config, error) {
	e := graph.Network{Name: m.Name, Kind: models.Transformer, Batch: 1, Size: graph.Sizes{Image: maskImage, Classes: m.Classes}, Build: m.build}
	return e.Config("", o)
}

func (m *Mask2Former) build(g *graph.Graph, s graph.Sizes) {
	g.Input(0, m.Backbone.Channels, s.Image, s.Image)
	g.Input(8, s.Image, s.Image)              // which pixels belong to the photo
	g.Input(4, maskObjects, s.Image, s.Image) // target masks
	leave := g.Module("pixel_level_module.encoder")
	maps := m.Backbone.Maps(g)
	leave()
	if len(maps) != maskLevels+1 {
		g.Fail("a network of %d stages; it has %d", len(maps), maskLevels+1)
		return
	}
	leave = g.Module("pixel_level_module.decoder")
	levels, pixels := m.pixels(g, maps)
	leave()
	masks, tokens := m.decode(g, levels, pixels)
	m.losses(g, masks, tokens, s)
}

// pixels returns the features of three sizes, the coarsest first, which attend to each
// other, and the fine features for masks.
func (m *Mask2Former) pixels(g *graph.Graph, maps []int) (levels []int, fine int) {
	var parts, places []int
	var sizes [][]int64
	table := g.Table("level_embed", maskLevels, m.Features)
	for i := range maskLevels {
		x := m.normed(g, fmt.Sprintf("input_projections.%d", i), maps[len(maps)-1-i], graph.Window{Out: m.Features, Bias: true})
		size := g.Shape(x)
		n := size[1] * size[2]
		sizes = append(sizes, size)
		parts = append(parts, g.View("tokens", x, n, m.Features))
		places = append(places, g.Op(models.Add, "level_pos", []int64{n, m.Features}, constant(g, "position_embedding", n, m.Features), table))
	}
	x, at := g.Concat("input_embeds_flat", parts...), g.Concat("level_pos_embed_flat", places...)
	for i := range m.Encoder.Depth {
		x = m.encode(g, fmt.Sprintf("encoder.layers.%d", i), x, at, sizes)
	}
	for i, size := range sizes {
		levels = append(levels, g.View(fmt.Sprintf("level.%d", i), x, size...))
	}
	fine = levels[len(levels)-1]
	if !m.Coarse {
		now := m.normed(g, "adapter_1", maps[0], graph.Window{Out: m.Features})
		now = g.Plus("add", now, g.Op(models.Upsample, "interpolate", g.Shape(now), fine))
		fine = g.Unary(models.ReLU, "layer_1.2", m.normed(g, "layer_1", now, graph.Window{Out: m.Features, Kernel: 3, Pad: 1}))
	}
	return levels, g.Conv("mask_projection", fine, graph.Window{Out: m.MaskWidth, Bias: true})
}

func (m *Mask2Former) normed(g *graph.Graph, name string, in int, w graph.Window) int {
	return g.GroupNorm(name+".1", g.Conv(name+".0", in, w))
}

// encode adds one layer of the pixel decoder. Each token samples some points of each
// level (deformable attention, arXiv 2010.04159).
func (m *Mask2Former) encode(g *graph.Graph, name string, x, at int, sizes [][]int64) int {
	defer g.StartBlock(name)()
	y := deformable(g, "self_attn", g.Plus("add_positions", x, at), x, m.Encoder.Heads, sizes)
	x = m.sum(g, "self_attn_layer_norm", x, y)
	y = g.DropIf(m.Dropout, "dropout", g.Unary(models.ReLU, "activation_fn", g.Linear("fc1", x, m.Encoder.Inner, true)))
	return m.sum(g, "final_layer_norm", x, g.Linear("fc2", y, m.Features, true))
}

// sum adds a part's output to its input, and a norm.
func (m *Mask2Former) sum(g *graph.Graph, norm string, in, x int) int {
	return g.LayerNorm(norm, g.Plus("add", in, g.DropIf(m.Dropout, "dropout", x)))
}

// deformable adds attention of tokens to points of features of several sizes. The points
// and their weights are computed from the tokens alone. It needs memory for all values at
// all points, because they are concatenated before they are weighted.
func deformable(g *graph.Graph, name string, query, source int, heads int64, sizes [][]int64) int {
	defer g.Module(name)()
	n, width := g.Shape(query)[0], g.Last(source)
	points := int64(len(sizes)) * maskPoints
	value := g.Linear("value_proj", source, width, true)
	value = g.CopyOf("masked_fill", value, g.Shape(value)...)
	offsets := g.Linear("sampling_offsets", query, heads*points*2, true)
	weights := g.Unary(models.Softmax, "softmax", g.Linear("attention_weights", query, heads*points, true))
	// The positions of the points have 32 bits, like the positions of the tokens.
	places := g.Op(models.Add, "sampling_locations", g.Shape(offsets), g.Scale("div", offsets), constant(g, "reference_points", 1))
	grids := g.Unary(models.Copy, "sampling_grids", g.Unary(models.Copy, "times", places))
	var parts []int
	for i, size := range sizes {
		area := size[1] * size[2]
		v := g.CopyOf(fmt.Sprintf("value.%d", i), value, width, area)
		grid := g.CopyOf(fmt.Sprintf("grid.%d", i), grids, heads, n, maskPoints*2)
		x := g.Op(models.OtherLayer, fmt.Sprintf("grid_sample.%d", i), []int64{width, n, maskPoints}, v, grid)
		parts = append(parts, g.Keeping(x, models.Keeps{Wide: []int{0, 1}}))
	}
	all := g.Op(models.Concat, "stack", []int64{width, n, points}, parts...)
	weights = g.CopyOf("weights", weights, heads, n, points)
	x := g.Times("weighed", all, weights)
	x = g.Op(models.Mean, "sum", []int64{width, n}, x)
	x = g.CopyOf("contiguous", x, n, width)
	return g.Linear("output_proj", x, width, true)
}
