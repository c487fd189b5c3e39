package detection

import (
	"fmt"
	"slices"

	"carma/configs/models"
	"carma/estimator/networks/graph"
	"carma/estimator/networks/transformer"
)

// SAM predicts segmentation masks (Segment Anything, arXiv 2304.02643), as built by the
// transformers library. A training has one box and one mask per image; the sides of the
// mask are a quarter of the image's.
type SAM struct {
	Name string
	Head string
	// Block is a block of the image encoder, whose tokens are patches.
	transformer.Block
	Depth        int64
	Image, Patch int64
	Channels     int64
	Window       int64   // side of the attention windows in patches, or 0 without windows
	Global       []int64 // blocks whose attention covers the whole image
	Relative     bool    // scores are added for the distances in both directions
	Absolute     bool    // positions come from a table
	Features     int64   // number of sines of a position, and of cosines
	Output       int64   // channels of the encoder's features

	Points, MaskChannels int64 // kinds of points, and channels of masks, in prompts
	Decoder              SAMDecoder
}

// Config returns the training of the model, by default with a batch of 1. Images have the
// model's size.
func (m *SAM) Config(o models.Overrides) (*models.Config, error) {
	return graph.Network{Name: m.Name, Kind: models.Transformer, Batch: 1, Build: m.build}.Config("", o)
}

func (m *SAM) build(g *graph.Graph, _ graph.Sizes) {
	side := m.Image / m.Patch
	g.Input(0, m.Channels, m.Image, m.Image)
	g.Input(4, 4*side, 4*side)
	positions := m.positions(g, side)
	var image, box, dense int
	encode := func() {
		image, box, dense = m.encode(g, side), prompt(g, "corners", 2, m.Decoder.Width), prompt(g, "no_mask_embed", 1, m.Decoder.Width)
	}
	if from := len(g.Layers); m.frozen(g) {
		g.Unused(encode)
		g.Unblocked(from) // operations without a gradient are not recomputed
	} else {
		encode()
	}
	g.Unused(func() { m.otherPrompts(g) })
	g.Loss("loss", m.Decoder.masks(g, image, dense, positions, box, side, nil), graph.Second)
}

// frozen reports whether the encoders are frozen and need no gradient. With adapters,
// everything else is frozen, but the gradient passes through.
func (m *SAM) frozen(g *graph.Graph) bool { return m.Head == graph.MaskDecoder && g.Rank == 0 }

// positions adds sines and cosines of the patches' positions, multiplied by a learned
// matrix.
func (m *SAM) positions(g *graph.Graph, side int64) int {
	defer g.Module("shared_image_embedding")()
	x := g.Table("positional_embedding", 2, m.Features)
	return waves(g, x, side, m.Features)
}

// waves adds sines and cosines of the positions of side x side features, multiplied by
// in: the number of each is features.
func waves(g *graph.Graph, in int, side, features int64) int {
	x := g.Op(models.MatMul, "matmul", []int64{side * side, features}, in)
	x = g.Scale("times", x)
	sine := g.Keeping(g.Unary(models.Copy, "sin", x), models.Keeps{Inputs: []int{0}})
	x = g.Op(models.Concat, "concat", []int64{side * side, 2 * features}, sine, g.Unary(models.Copy, "cos", x))
	return g.PerSample(g.CopyOf("repeat", x, side*side, 2*features))
}

// prompt adds a table of rows for the decoder.
func prompt(g *graph.Graph, name string, rows, width int64) int {
	defer g.Module("prompt_encoder")()
	return g.Table(name, rows, width)
}

// otherPrompts adds the weights for points and masks, which a box does not use.
func (m *SAM) otherPrompts(g *graph.Graph) {
	defer g.Module("prompt_encoder")()
	g.Table("point_embed", max(m.Points-2, 0)+1, m.Decoder.Width) // and the vector for no point
	maskPrompt(g, m.Decoder.Width, m.MaskChannels)
}

// maskPrompt adds the weights for masks with c channels in prompts.
func maskPrompt(g *graph.Graph, width, c int64) {
	n := c / 4
	g.Stored("mask_embed", graph.Data, []int64{4 * n, n, 4 * n * c, c, c * width, width, 2 * n, 2 * 4 * n})
}

// encode computes the features of the image.
func (m *SAM) encode(g *graph.Graph, side int64) int {
	defer g.Module("vision_encoder")()
	x := g.Conv("patch_embed.projection", graph.Data, graph.Window{Out: m.Width, Kernel: m.Patch, Stride: m.Patch, Bias: true})
	x = g.View("tokens", x, side*side, m.Width)
	if m.Absolute {
		x = g.Plus("pos_embed.add", x, g.Table("pos_embed", side*side, m.Width))
	}
	for i := range m.Depth {
		x = m.layer(g, fmt.Sprintf("layers.%d", i), x, side, slices.Contains(m.Global, i))
	}
	defer g.Module("neck")()
	x = g.View("image", x, m.Width, side, side)
	x = g.LayerNorm2d("layer_norm1", g.Conv("conv1", x, graph.Window{Out: m.Output}))
	return g.LayerNorm2d("layer_norm2", g.Conv("conv2", x, graph.Window{Out: m.Output, Kernel: 3, Pad: 1}))
}

// layer adds one block of the image encoder. An image whose side is not a multiple of the
// window's is padded.
func (m *SAM) layer(g *graph.Graph, name string, in int, side int64, global bool) int {
	defer g.StartBlock(name)()
	area, of, n := side*side, side, side*side
	x := m.Norm(g, "layer_norm1", in)
	if !global && m.Window > 0 {
		of = m.Window
		windows := (side + of - 1) / of
		n = windows * windows * of * of
		if n != area {
			x = g.CopyOf("pad", x, n, m.Width)
		}
		x = g.CopyOf("partition", x, n, m.Width)
	}
	x = m.within(g, x, of)
	if !global && m.Window > 0 {
		x = g.CopyOf("unpartition", x, n, m.Width)
		if n != area {
			x = g.CopyOf("unpad", x, area, m.Width)
		}
	}
	in = g.Plus("add1", in, x)
	return g.Plus("add2", in, m.FeedForward(g, m.Norm(g, "layer_norm2", in), 0))
}

// within adds attention within windows of side x side patches. The scores of distances
// are products with the queries, and are added for each pair of patches: a mask for each
// head and image.
func (m *SAM) within(g *graph.Graph, x int, side int64) int {
	defer g.Module("attn")()
	n := g.Shape(x)[0]
	qkv := g.Adapted("qkv", x, 3*m.Width, m.BiasQKV)
	q, k, v := g.ThreeWay(g.CopyOf("heads", qkv, n, 3*m.Width), m.Width)
	var masks []int
	if m.Relative {
		rows := m.distances(g, "rel_pos_h", g.CopyOf("q.contiguous", q, n, m.Width), side)
		columns := m.distances(g, "rel_pos_w", q, side)
		sum := g.Op(models.Add, "decomposed_rel_pos", []int64{m.Heads * n, side, side}, rows, columns)
		// The sum has its rows first, so it is copied; its gradient is not.
		masks = append(masks, g.Op(models.Concat, "reshape", []int64{m.Heads * n, side * side}, sum))
	}
	if m.frozen(g) {
		masks = append(masks, x, qkv) // variables of the program reference these
	}
	a := g.Attend("sdpa", q, k, v, m.Heads)
	g.Layers[a].Inputs = append(g.Layers[a].Inputs, masks...)
	return g.Linear("proj", a, m.Width, true)
}

// distances adds the scores of the queries with the distances in one direction.
func (m *SAM) distances(g *graph.Graph, name string, q int, side int64) int {
	table := g.CopyOf(name+".resized", g.Table(name, 2*side-1, m.Key), m.Key, 2*side-1)
	table = g.CopyOf(name+".pairs", table, side, side, m.Key)
	x := g.Op(models.MatMul, name+".scores", []int64{m.Heads * g.Shape(q)[0], side}, q, table)
	if g.Rank > 0 { // the table is frozen, so its gradient needs no queries
		g.Keeping(x, models.Keeps{Inputs: []int{1}})
	}
	return x
}
