package detection

import (
	"fmt"
	"slices"

	"carma/configs/models"
	"carma/estimator/networks/graph"
)

// SAM2 makes masks of images (SAM 2, arXiv 2408.00714) as Sam2Model of the transformers
// library builds it: Hiera (arXiv 2306.00989), a pyramid of features, and a decoder of
// masks. The memory of a video's earlier images is not included. A training has one box
// per image, and learns one mask with a quarter of the image's side.
type SAM2 struct {
	Name, Head string

	Image, Channels     int64
	Kernel, Stride, Pad int64 // of the first convolution
	Stages              []HieraStage
	Global              []int64 // blocks whose attention covers the whole image
	Pools               int64   // number of stages after the first that halve the image
	Background          int64   // side of the table of positions that is enlarged to the image
	Ratio               float64 // ratio of a block's inner width to its width
	Activation          string

	Output  int64   // channels of the features
	TopDown []int64 // stages to whose features the coarser ones are added

	Points, MaskChannels int64
	Decoder              SAMDecoder
}

// HieraStage is a stage of the image encoder.
type HieraStage struct{ Blocks, Width, Heads, Window int64 }

// Config returns the training of the model, by default with a batch of 1. Images have the
// model's size.
func (m *SAM2) Config(o models.Overrides) (*models.Config, error) {
	finish := func(c *models.Config) { onlyUnderAutocast(c, narrowPositions) }
	return graph.Network{Name: m.Name, Kind: models.Transformer, Batch: 1, Build: m.build, Finish: finish}.Config("", o)
}

func (m *SAM2) build(g *graph.Graph, _ graph.Sizes) {
	// The decoder takes three levels of features, the finest first, with four times, twice
	// and once the side of the coarsest.
	side := m.Image / m.Stride / 4
	g.Input(0, m.Channels, m.Image, m.Image)
	g.Input(4, 4*side, 4*side)
	// The library caches the last computed positions, of the finest features.
	kept := g.NewInput(0, m.Output, 4*side, 4*side)
	positions := m.positions(g, side)
	var levels []pyramidLevel
	var box, dense int
	encode := func() {
		levels, box, dense = m.pyramid(g, m.encode(g), kept), m.corners(g), prompt(g, "no_mask_embed", 1, m.Decoder.Width)
	}
	if from := len(g.Layers); m.Head == graph.MaskDecoder && g.Rank == 0 {
		g.Unused(encode)
		g.Unblocked(from) // operations without a gradient are not recomputed
	} else {
		encode()
	}
	g.Unused(func() { maskPrompt(g, m.Decoder.Width, m.MaskChannels) })
	fine := []int{
		g.Conv("mask_decoder.conv_s0", levels[0].features, graph.Window{Out: m.Output / 8, Bias: true}),
		g.Conv("mask_decoder.conv_s1", levels[1].features, graph.Window{Out: m.Output / 4, Bias: true}),
	}
	image := g.Op(models.Add, "add_no_memory", g.Shape(levels[2].features), levels[2].features, g.Table("no_memory_embedding", 1, 1, m.Output))
	masks := m.Decoder.masks(g, image, dense, positions, box, side, fine)
	for _, level := range levels {
		g.Layers[masks].Holds = append(g.Layers[masks].Holds, level.positions)
	}
	g.Loss("loss", masks, graph.Second, fine[0], fine[1], image) // the script keeps the model's outputs
}

// positions adds sines and cosines of the positions of the coarsest features.
func (m *SAM2) positions(g *graph.Graph, side int64) int {
	defer g.Module("shared_image_embedding")()
	x := g.Add(models.Layer{Name: "grid", Type: models.OtherLayer, Inputs: []int{graph.Second}, Out: []int64{side * side, 2}, Whole: true, Keeps: &models.Keeps{}})
	return waves(g, x, side, m.Output/2)
}

// corners adds two corners of a box, and a row for "no point".
func (m *SAM2) corners(g *graph.Graph) int {
	x := prompt(g, "corners", 3, m.Decoder.Width)
	g.Layers[x].Params = []int64{m.Points * m.Decoder.Width, m.Decoder.Width}
	return x
}

// encode returns the features of each stage.
func (m *SAM2) encode(g *graph.Graph) []int {
	defer g.Module("vision_encoder.backbone")()
	x := g.Conv("patch_embed.projection", graph.Data, graph.Window{Out: m.Stages[0].Width, Kernel: m.Kernel, Stride: m.Stride, Pad: m.Pad, Bias: true})
	h := hiera{SAM2: m, side: g.Shape(x)[1]}
	width := m.Stages[0].Width
	image := []int64{width, h.side, h.side}
	background := g.Keeping(g.Op(models.Upsample, "pos_embed.interpolate", image, g.Table("pos_embed", width, m.Background, m.Background)), models.Keeps{})
	window := g.CopyOf("pos_embed_window.tile", g.Table("pos_embed_window", width, m.Stages[0].Window, m.Stages[0].Window), image...)
	x = g.Plus("pos_embed.add", x, g.Op(models.Add, "pos_embed.sum", image, background, window))
	x = g.View("tokens", x, h.side*h.side, width)
	var out []int
	for i := range m.Stages {
		x = h.stage(g, i, x)
		out = append(out, g.View("stage", x, m.Stages[i].Width, h.side, h.side))
	}
	return out
}

// hiera is the encoder while it is built: the side of the image, and the number of
// blocks.
type hiera struct {
	*SAM2
	side, blocks int64
}

func (h *hiera) stage(g *graph.Graph, i int, x int) int {
	s := h.Stages[i]
	for k := range s.Blocks {
		b := hieraBlock{HieraStage: s, side: h.side, stride: 1, inner: int64(float64(s.Width) * h.Ratio), activation: h.Activation}
		if i > 0 && k == 0 {
			b.Window = h.Stages[i-1].Window
			if int64(i) <= h.Pools {
				b.stride = 2
				h.side /= 2
			}
		}
		if slices.Contains(h.Global, h.blocks) {
			b.Window = 0
		}
		x = b.build(g, fmt.Sprintf("blocks.%d", h.blocks), x)
		h.blocks++
	}
	return x
}

// hieraBlock is a block of attention within windows. The first block of a stage may halve
// the image; its queries are then the largest of four.
type hieraBlock struct {
	HieraStage
	side, stride int64
	inner        int64
	activation   string
}

func (b *hieraBlock) build(g *graph.Graph, name string, in int) int {
	defer g.StartBlock(name)()
	before, x := in, g.LayerNorm("layer_norm1", in)
	if g.Last(in) != b.Width {
		in = b.halved(g, "pool", g.Linear("proj", x, b.Width, true), b.side)
	}
	of := b.side
	if b.Window > 0 {
		of = b.Window
		n := up(b.side, of) * up(b.side, of)
		x = g.CopyOf("partition", g.CopyOf("pad", x, n, g.Last(x)), n, g.Last(x))
	}
	a := b.attention(g, x, of)
	x = a
	if b.Window > 0 {
		side, of := b.side/b.stride, max(b.Window/b.stride, 1)
		x = g.CopyOf("unpartition", x, up(side, of)*up(side, of), b.Width)
		if side%of != 0 {
			x = g.CopyOf("unpad", x, side*side, b.Width)
		}
	}
	sum := g.Plus("add1", in, x)
	norm := g.LayerNorm("layer_norm2", sum)
	x = g.Unary(b.activation, "mlp.act", g.Linear("mlp.proj_in", norm, b.inner, true))
	x = g.Linear("mlp.proj_out", x, b.Width, true)
	g.Layers[x].Holds = []int{before, in, a, norm} // variables of the program
	return g.Plus("add2", sum, x)
}

// up returns the next multiple.
func up(n, of int64) int64 { return (n + of - 1) / of * of }

// halved adds the maxima of each four of an image of tokens.
func (b *hieraBlock) halved(g *graph.Graph, name string, x int, side int64) int {
	if b.stride == 1 {
		return x
	}
	n := g.Shape(x)[0] / side
	x = g.MaxPool(name, g.View(name+".image", x, b.Width, side, n), graph.Window{Kernel: b.stride, Stride: b.stride})
	s := g.Shape(x)
	return g.View(name+".tokens", x, s[1]*s[2], b.Width)
}

// attention adds attention within windows with a side of this number of tokens. The
// library also computes scores between the heads of each token, and drops them.
func (b *hieraBlock) attention(g *graph.Graph, x int, of int64) int {
	defer g.Module("attn")()
	n := g.Shape(x)[0]
	windows := n / (of * of)
	qkv := g.Adapted("qkv", x, 3*b.Width, true)
	q := g.View("query", qkv, n, b.Width)
	k, v := g.View("key", qkv, of*of, windows*b.Width), g.View("value", qkv, of*of, windows*b.Width)
	scaled := g.Scale("query.scale", q)
	dropped := g.Keeping(g.Op(models.Copy, "heads.softmax", []int64{n, b.Heads, b.Heads}, q), models.Keeps{})
	q = b.halved(g, "query.pool", q, n/of)
	n /= b.stride * b.stride
	// Windows count as heads: each has its own scores.
	a := g.Attend("sdpa", g.View("query.windows", q, n/windows, windows*b.Width), k, v, windows*b.Heads)
	g.Layers[a].Holds = []int{x, scaled, dropped}
	x = g.Linear("proj", g.View("tokens", a, n, b.Width), b.Width, true)
	g.Layers[x].Holds = []int{scaled, dropped, qkv}
	return x
}

// pyramidLevel is a level of the pyramid: its features and their positions.
type pyramidLevel struct{ features, positions int }

// narrowPositions is the name of the positions in the features' precision.
const narrowPositions = "position_encoding.to"

// pyramid makes features of the three finest stages, the finest first. kept are their
// positions.
func (m *SAM2) pyramid(g *graph.Graph, stages []int, kept int) []pyramidLevel {
	defer g.Module("vision_encoder.neck")()
	levels := make([]pyramidLevel, len(stages))
	coarse := 0
	for i := len(stages) - 1; i >= 0; i-- {
		leave := g.Module(fmt.Sprintf("level.%d", i))
		x := g.Conv("convs", stages[i], graph.Window{Out: m.Output, Bias: true})
		if i < len(stages)-1 && slices.Contains(m.TopDown, int64(i)) {
			x = g.Plus("add", x, g.CopyOf("interpolate", coarse, g.Shape(x)...))
		}
		coarse = x
		s := g.Shape(x)
		angles := g.Keeping(g.Op(models.OtherLayer, "position_encoding.angles", s, graph.Data), models.Keeps{})
		sines := g.CopyOf("position_encoding.sines", angles, s...)
		if i > 0 { // the layer before narrowPositions has the result
			g.CopyOf("position_encoding.cat", sines, s...)
		} else {
			g.View("position_encoding.cat", kept, s...)
		}
		narrow := g.Keeping(g.Op(models.OtherLayer, narrowPositions, s, x), models.Keeps{})
		levels[i] = pyramidLevel{x, narrow}
		leave()
	}
	return levels[:3]
}
