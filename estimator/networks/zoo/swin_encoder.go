package zoo

import (
	"fmt"

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
	SkipPath        bool // whole branches are left out at random, but in the first block

	Head    string
	Classes int64
}

// Config is the training of an encoder with its head, by default with a batch of 1
// and images as the model has them.
func (w *SwinEncoder) Config(o models.Overrides) (*models.Config, error) {
	e := entry{name: w.Name, kind: models.Transformer, batch: 1, size: settings{image: w.Image}, build: w.build}
	if HasClasses(w.Head) {
		e.size.classes = w.Classes
	}
	return e.config("", o)
}

func (w *SwinEncoder) build(g *graph, s settings) {
	g.photo(w.Channels, s)
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
		if stage < len(w.Depths)-1 {
			x, side = w.merge(g, fmt.Sprintf("encoder.layers.%d.downsample", stage), x, side)
		}
	}
	x = w.norm(g, "layernorm", x)
	width := g.last(x)
	mean := g.op(models.Mean, "pooler", []int64{width}, x)
	if w.Head == BaseModel {
		g.loss("loss", mean)
		return
	}
	g.trained(func() { x = g.plain("classifier", mean, s.classes, true) })
	g.classify(x)
}

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
	of := min(w.Window, side)
	shifted = shifted && side > w.Window
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
	if shifted {
		bias = g.copyOf("combined_mask", bias, number*b.Heads, area, area)
	} else {
		bias = g.view("spread", bias, number*b.Heads, area, area)
	}
	g.layers[bias].Whole = false
	a := g.attend("sdpa", q, k, v, b.Heads)
	g.layers[a].Inputs = append(g.layers[a].Inputs, bias)
	return b.drop(g, "dropout", g.linear(b.Projections.Out, a, b.Width, b.BiasOut))
}
