package zoo

import (
	"fmt"
	"math"

	"carma/configs/models"
)

// SwinEncoder is a Transformer of shifted windows as the transformers library builds it:
// attention in one kernel, whose scores get a learned bias. The catalogue's has single
// operations, as torchvision's.
type SwinEncoder struct {
	Name string
	// Block is that of the first stage. Each further stage has half of the pixels in each
	// direction, and twice the width and heads.
	Block
	Depths, HeadsOf []int64 // of each stage
	Ratio           int64   // of the feed-forward part's width to the token's
	Image, Patch    int64
	Channels        int64
	Window          int64
	Always          bool // windows also in images that are no larger than one
	Single          bool // attention in single operations (MaskFormer's)
	SkipPath        bool // whole branches are left out at random, but in the first block

	Head    string
	Classes int64
}

// Config is the training of an encoder with its head, by default with a batch of 1
// and images as the model has them.
func (w *SwinEncoder) Config(o models.Overrides) (*models.Config, error) {
	return entry{name: w.Name, kind: models.Transformer, batch: 1, size: settings{image: w.Image}, build: w.build}.headed(w.Head, w.Classes).config("", o)
}

func (w *SwinEncoder) build(g *graph, s settings) {
	g.photo(w.Channels, s)
	stages := w.stages(g)
	x := w.norm(g, "layernorm", stages[len(stages)-1])
	width := g.last(x)
	mean := g.op(models.Mean, "pooler", []int64{width}, x)
	if w.Head == BaseModel {
		g.loss("loss", mean)
		return
	}
	g.newClasses("classifier", mean, s)
}

// stages are the outputs of the stages, before pixels are joined.
func (w *SwinEncoder) stages(g *graph) (stages []int) {
	x := g.conv("patch_embeddings.projection", data, window{out: w.Width, kernel: w.Patch, stride: w.Patch, pad: 0, bias: true})
	side := g.shape(x)[1]
	x = w.norm(g, "embeddings.norm", g.view("flatten", x, side*side, w.Width))
	blocks := 0
	for stage, depth := range w.Depths {
		b := w.Block
		b.Heads, b.Width = w.HeadsOf[stage], w.Width<<stage
		b.Inner, b.Groups = w.Ratio*b.Width, b.Heads
		for i := range depth {
			x = w.layer(g, &b, fmt.Sprintf("encoder.layers.%d.blocks.%d", stage, i), x, side, i%2 == 1, w.SkipPath && blocks > 0)
			blocks++
		}
		stages = append(stages, x)
		if stage < len(w.Depths)-1 {
			x, side = w.merge(g, fmt.Sprintf("encoder.layers.%d.downsample", stage), x, side)
		}
	}
	return stages
}

// maps are the normed outputs of the stages as images, for a network above. Where
// attention is one kernel, the library makes an image of each first and takes it back.
func (w *SwinEncoder) maps(g *graph) (maps []int) {
	w.Always = true
	leave := g.module("swin")
	stages := w.stages(g)
	g.unused(func() { w.norm(g, "layernorm", stages[len(stages)-1]) })
	leave()
	for i, x := range stages {
		n, width := g.shape(x)[0], g.last(x)
		side := w.sideAt(n)
		if !w.Single {
			x = g.copyOf("tokens", g.copyOf("image", x, width, side, side), n, width)
		}
		x = g.layerNorm(fmt.Sprintf("hidden_states_norms.stage%d", i+1), x)
		maps = append(maps, g.copyOf("map", x, width, side, side))
	}
	return maps
}

// sideAt is the side of a square of n pixels.
func (w *SwinEncoder) sideAt(n int64) int64 { return int64(math.Round(math.Sqrt(float64(n)))) }

// merge joins squares of four pixels; an odd image is padded.
func (w *SwinEncoder) merge(g *graph, name string, x int, side int64) (int, int64) {
	defer g.module(name)()
	width, half := g.last(x), (side+1)/2
	x = g.copyOf("concat", x, half*half, 4*width)
	return g.linear("reduction", w.norm(g, "norm", x), 2*width, false), half
}

// layer is one block of a stage, on an image of side x side pixels.
func (w *SwinEncoder) layer(g *graph, b *Block, name string, in int, side int64, shifted, skipped bool) int {
	defer g.startBlock(name)()
	of := w.Window
	if !w.Always {
		of, shifted = min(of, side), shifted && side > of
	}
	n := (side + of - 1) / of
	padded := n * n * of * of
	x := g.copyOf("pad", b.norm(g, "layernorm_before", in), padded, b.Width)
	if shifted {
		x = g.copyOf("roll", x, padded, b.Width)
	}
	x = w.windows(g, b, g.copyOf("partition", x, padded, b.Width), of, shifted)
	x = g.copyOf("reverse", x, padded, b.Width)
	if shifted {
		x = g.copyOf("unroll", x, padded, b.Width)
	}
	if padded != side*side {
		x = g.copyOf("unpad", x, side*side, b.Width)
	}
	if skipped {
		x = g.skip("drop_path", g.scale("drop_path.div", x))
	}
	in = g.plus("add1", in, x)
	x = b.dense(g, b.norm(g, "layernorm_after", in), b.Inner)
	return g.plus("add2", in, b.drop(g, "dropout", x))
}

// windows is attention within windows of a side of pixels. The bias is a table that all
// windows share. For shifted windows it is added to a mask of each.
func (w *SwinEncoder) windows(g *graph, b *Block, x int, side int64, shifted bool) int {
	defer g.module("attention")()
	area := side * side
	number := g.shape(x)[0] / area
	q, k, v := b.queries(g, x, x)
	table := g.table("relative_position_bias_table", (2*side-1)*(2*side-1), b.Heads)
	bias := g.copyOf("relative_position_bias", table, b.Heads, area, area)
	if w.Single {
		return g.linear(b.Projections.Out, g.windowScores(q, k, v, bias, b.Heads, area, shifted), b.Width, b.BiasOut)
	}
	if shifted {
		bias = g.copyOf("combined_mask", bias, number*b.Heads, area, area)
	} else {
		bias = g.view("spread", bias, number*b.Heads, area, area)
	}
	g.perSample(bias)
	a := g.attend("sdpa", q, k, v, b.Heads)
	g.layers[a].Inputs = append(g.layers[a].Inputs, bias)
	return b.drop(g, "dropout", g.linear(b.Projections.Out, a, b.Width, b.BiasOut))
}

// windowScores is attention within windows of area pixels in single operations, on copies
// with the heads one after the other.
func (g *graph) windowScores(q, k, v, bias int, heads, area int64, shifted bool) int {
	n, width := g.shape(q)[0], g.last(q)
	each := []int64{heads, n, area}
	a := g.op(models.MatMul, "scores", each, g.copyOf("q.heads", q, n, width), g.copyOf("k.heads", k, n, width))
	a = g.op(models.Add, "bias.add", each, g.scale("div", a), bias)
	if shifted {
		a = g.copyOf("mask.add", a, each...)
	}
	a = g.unary(models.Softmax, "softmax", a)
	a = g.op(models.MatMul, "context", []int64{n, width}, a, g.copyOf("v.heads", v, n, width))
	return g.copyOf("contiguous", a, n, width)
}
