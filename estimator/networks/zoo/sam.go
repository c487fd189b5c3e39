package zoo

import (
	"fmt"
	"slices"

	"carma/configs/models"
)

// The heads of SAM; see [MaskedLM]. The encoders of the image and of the prompts are
// trained too, or frozen.
const (
	MaskGeneration = "mask-generation"
	MaskDecoder    = "mask-decoder"
)

// SAM makes masks of images (Segment Anything, arXiv 2304.02643) as the transformers
// library builds it. A training has one box in each image, and learns one mask of a
// quarter of the image's side.
type SAM struct {
	Name string
	Head string
	// Block is that of the image's encoder, whose tokens are patches.
	Block
	Depth        int64
	Image, Patch int64
	Channels     int64
	Window       int64   // patches on a side of the windows that attention is within; 0: none
	Global       []int64 // blocks whose attention sees the whole image
	Relative     bool    // scores of the distances in both directions
	Absolute     bool    // a table of positions
	Features     int64   // sines of a position, and as many cosines
	Output       int64   // channels of the encoder's features

	Points, MaskChannels int64 // kinds of points, and channels of masks, in prompts
	Decoder              SAMDecoder
}

// Config is the training of the model, by default with a batch of 1. Images have the
// model's size.
func (m *SAM) Config(o models.Overrides) (*models.Config, error) {
	return entry{name: m.Name, kind: models.Transformer, batch: 1, build: m.build}.config("", o)
}

func (m *SAM) build(g *graph, _ settings) {
	side := m.Image / m.Patch
	g.input(0, m.Channels, m.Image, m.Image)
	g.input(4, 4*side, 4*side)
	positions := m.positions(g, side)
	var image, box, dense int
	encode := func() {
		image, box, dense = m.encode(g, side), m.prompt(g, "corners", 2), m.prompt(g, "no_mask_embed", 1)
	}
	if from := len(g.layers); m.frozen(g) {
		g.unused(encode)
		g.unblocked(from) // what runs without a gradient is not recomputed
	} else {
		encode()
	}
	g.unused(func() { m.otherPrompts(g) })
	g.loss("loss", m.Decoder.masks(g, image, dense, positions, box, side, nil), second)
}

// frozen reports whether the encoders are. With adapters all else is frozen, and a
// gradient goes through.
func (m *SAM) frozen(g *graph) bool { return m.Head == MaskDecoder && g.rank == 0 }

// positions are sines and cosines of the patches' places, through a learned matrix.
func (m *SAM) positions(g *graph, side int64) int {
	defer g.module("shared_image_embedding")()
	x := g.table("positional_embedding", 2, m.Features)
	return g.waves(x, side, m.Features)
}

// waves are sines and cosines of the places of side x side features: so many of each, of
// products of the places with what in is.
func (g *graph) waves(in int, side, features int64) int {
	x := g.op(models.MatMul, "matmul", []int64{side * side, features}, in)
	x = g.scale("times", x)
	sine := g.keeping(g.unary(models.Copy, "sin", x), models.Keeps{Inputs: []int{0}})
	x = g.op(models.Concat, "concat", []int64{side * side, 2 * features}, sine, g.unary(models.Copy, "cos", x))
	return g.perSample(g.copyOf("repeat", x, side*side, 2*features))
}

// prompt is a table of rows for the decoder.
func (m *SAM) prompt(g *graph, name string, rows int64) int {
	defer g.module("prompt_encoder")()
	return g.table(name, rows, m.Decoder.Width)
}

// otherPrompts are the weights for points and masks, which a box does not use.
func (m *SAM) otherPrompts(g *graph) {
	defer g.module("prompt_encoder")()
	g.table("point_embed", max(m.Points-2, 0)+1, m.Decoder.Width) // and that for none
	maskPrompt(g, m.Decoder.Width, m.MaskChannels)
}

// maskPrompt is the weights for masks of c channels in prompts.
func maskPrompt(g *graph, width, c int64) {
	n := c / 4
	g.stored("mask_embed", data, []int64{4 * n, n, 4 * n * c, c, c * width, width, 2 * n, 2 * 4 * n})
}

// encode makes features of the image.
func (m *SAM) encode(g *graph, side int64) int {
	defer g.module("vision_encoder")()
	x := g.conv("patch_embed.projection", data, window{out: m.Width, kernel: m.Patch, stride: m.Patch, bias: true})
	x = g.view("tokens", x, side*side, m.Width)
	if m.Absolute {
		x = g.plus("pos_embed.add", x, g.table("pos_embed", side*side, m.Width))
	}
	for i := range m.Depth {
		x = m.layer(g, fmt.Sprintf("layers.%d", i), x, side, slices.Contains(m.Global, i))
	}
	defer g.module("neck")()
	x = g.view("image", x, m.Width, side, side)
	x = g.layerNorm2d("layer_norm1", g.conv("conv1", x, window{out: m.Output}))
	return g.layerNorm2d("layer_norm2", g.conv("conv2", x, window{out: m.Output, kernel: 3, pad: 1}))
}

// layer is one block of the image's encoder. An image whose side is no multiple of the
// window's is padded.
func (m *SAM) layer(g *graph, name string, in int, side int64, global bool) int {
	defer g.startBlock(name)()
	area, of, n := side*side, side, side*side
	x := m.norm(g, "layer_norm1", in)
	if !global && m.Window > 0 {
		of = m.Window
		windows := (side + of - 1) / of
		n = windows * windows * of * of
		if n != area {
			x = g.copyOf("pad", x, n, m.Width)
		}
		x = g.copyOf("partition", x, n, m.Width)
	}
	x = m.within(g, x, of)
	if !global && m.Window > 0 {
		x = g.copyOf("unpartition", x, n, m.Width)
		if n != area {
			x = g.copyOf("unpad", x, area, m.Width)
		}
	}
	in = g.plus("add1", in, x)
	return g.plus("add2", in, m.feedForward(g, m.norm(g, "layer_norm2", in), 0))
}

// within is attention within windows of so many patches on a side. The scores of
// distances are products with the queries, and added up for each pair of patches: a mask
// for each head and image.
func (m *SAM) within(g *graph, x int, side int64) int {
	defer g.module("attn")()
	n := g.shape(x)[0]
	qkv := g.adapted("qkv", x, 3*m.Width, m.BiasQKV)
	q, k, v := g.threeWay(g.copyOf("heads", qkv, n, 3*m.Width), m.Width)
	var masks []int
	if m.Relative {
		rows := m.distances(g, "rel_pos_h", g.copyOf("q.contiguous", q, n, m.Width), side)
		columns := m.distances(g, "rel_pos_w", q, side)
		sum := g.op(models.Add, "decomposed_rel_pos", []int64{m.Heads * n, side, side}, rows, columns)
		// Rows come first in the sum, so it is copied; the gradient is not.
		masks = append(masks, g.op(models.Concat, "reshape", []int64{m.Heads * n, side * side}, sum))
	}
	if m.frozen(g) {
		masks = append(masks, x, qkv) // variables of the program hold these
	}
	a := g.attend("sdpa", q, k, v, m.Heads)
	g.layers[a].Inputs = append(g.layers[a].Inputs, masks...)
	return g.linear("proj", a, m.Width, true)
}

// distances are the scores of the queries with the distances in one direction.
func (m *SAM) distances(g *graph, name string, q int, side int64) int {
	table := g.copyOf(name+".resized", g.table(name, 2*side-1, m.Key), m.Key, 2*side-1)
	table = g.copyOf(name+".pairs", table, side, side, m.Key)
	x := g.op(models.MatMul, name+".scores", []int64{m.Heads * g.shape(q)[0], side}, q, table)
	if g.rank > 0 { // the table is frozen: it needs no queries for its gradient
		g.keeping(x, models.Keeps{Inputs: []int{1}})
	}
	return x
}
