package transformer

import (
	"fmt"
	"math"

	"carma/configs/models"
	"carma/estimator/networks/graph"
)

// SwinEncoder is a Transformer of shifted windows as built by the transformers library:
// attention in one kernel, whose scores get a learned bias. The catalogue's Swin has
// single operations, as in torchvision.
type SwinEncoder struct {
	Name string
	// Block is a block of the first stage. Each further stage has half of the side in
	// pixels, and twice the width and heads.
	Block
	Depths, HeadsOf []int64 // of each stage
	Ratio           int64   // ratio of the feed-forward part's width to the token's
	Image, Patch    int64
	Channels        int64
	Window          int64
	Always          bool // windows are used even if the image is no larger than one
	Single          bool // attention as separate operations, without a fused kernel (MaskFormer)
	SkipPath        bool // whole branches are randomly dropped, except in the first block

	Head    string
	Classes int64
}

// Config returns the training of an encoder with its head, by default with a batch of 1
// and images as the model has them.
func (w *SwinEncoder) Config(o models.Overrides) (*models.Config, error) {
	return graph.Network{Name: w.Name, Kind: models.Transformer, Batch: 1, Size: graph.Sizes{Image: w.Image}, Build: w.build}.Headed(w.Head, w.Classes).Config("", o)
}

func (w *SwinEncoder) build(g *graph.Graph, s graph.Sizes) {
	g.Photo(w.Channels, s)
	stages := w.stages(g)
	x := w.Norm(g, "layernorm", stages[len(stages)-1])
	width := g.Last(x)
	mean := g.Op(models.Mean, "pooler", []int64{width}, x)
	if w.Head == graph.BaseModel {
		g.Loss("loss", mean)
		return
	}
	g.NewClasses("classifier", mean, s)
}

// stages adds the stages and returns their outputs, before pixels are merged.
func (w *SwinEncoder) stages(g *graph.Graph) (stages []int) {
	x := g.Conv("patch_embeddings.projection", graph.Data, graph.Window{Out: w.Width, Kernel: w.Patch, Stride: w.Patch, Pad: 0, Bias: true})
	side := g.Shape(x)[1]
	x = w.Norm(g, "embeddings.norm", g.View("flatten", x, side*side, w.Width))
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

// Maps adds the normed outputs of the stages as images, for a network on top. If
// attention is one kernel, the library first makes an image of each and reverts it.
func (w *SwinEncoder) Maps(g *graph.Graph) (maps []int) {
	w.Always = true
	leave := g.Module("swin")
	stages := w.stages(g)
	g.Unused(func() { w.Norm(g, "layernorm", stages[len(stages)-1]) })
	leave()
	for i, x := range stages {
		n, width := g.Shape(x)[0], g.Last(x)
		side := w.sideAt(n)
		if !w.Single {
			x = g.CopyOf("tokens", g.CopyOf("image", x, width, side, side), n, width)
		}
		x = g.LayerNorm(fmt.Sprintf("hidden_states_norms.stage%d", i+1), x)
		maps = append(maps, g.CopyOf("map", x, width, side, side))
	}
	return maps
}

// sideAt returns the side of a square of n pixels.
func (w *SwinEncoder) sideAt(n int64) int64 { return int64(math.Round(math.Sqrt(float64(n)))) }

// merge joins squares of four pixels; an odd image is padded.
func (w *SwinEncoder) merge(g *graph.Graph, name string, x int, side int64) (int, int64) {
	defer g.Module(name)()
	width, half := g.Last(x), (side+1)/2
	x = g.CopyOf("concat", x, half*half, 4*width)
	return g.Linear("reduction", w.Norm(g, "norm", x), 2*width, false), half
}

// layer adds one block of a stage, on an image of side x side pixels.
func (w *SwinEncoder) layer(g *graph.Graph, b *Block, name string, in int, side int64, shifted, skipped bool) int {
	defer g.StartBlock(name)()
	of := w.Window
	if !w.Always {
		of, shifted = min(of, side), shifted && side > of
	}
	n := (side + of - 1) / of
	padded := n * n * of * of
	x := g.CopyOf("pad", b.Norm(g, "layernorm_before", in), padded, b.Width)
	if shifted {
		x = g.CopyOf("roll", x, padded, b.Width)
	}
	x = w.windows(g, b, g.CopyOf("partition", x, padded, b.Width), of, shifted)
	x = g.CopyOf("reverse", x, padded, b.Width)
	if shifted {
		x = g.CopyOf("unroll", x, padded, b.Width)
	}
	if padded != side*side {
		x = g.CopyOf("unpad", x, side*side, b.Width)
	}
	if skipped {
		x = g.Skip("drop_path", g.Scale("drop_path.div", x))
	}
	in = g.Plus("add1", in, x)
	x = b.dense(g, b.Norm(g, "layernorm_after", in), b.Inner)
	return g.Plus("add2", in, b.drop(g, "dropout", x))
}

// windows adds attention within windows of side x side pixels. The bias is a table that
// all windows share. For shifted windows it is added to each window's mask.
func (w *SwinEncoder) windows(g *graph.Graph, b *Block, x int, side int64, shifted bool) int {
	defer g.Module("attention")()
	area := side * side
	number := g.Shape(x)[0] / area
	q, k, v := b.queries(g, x, x)
	table := g.Table("relative_position_bias_table", (2*side-1)*(2*side-1), b.Heads)
	bias := g.CopyOf("relative_position_bias", table, b.Heads, area, area)
	if w.Single {
		return g.Linear(b.Projections.Out, windowScores(g, q, k, v, bias, b.Heads, area, shifted), b.Width, b.BiasOut)
	}
	if shifted {
		bias = g.CopyOf("combined_mask", bias, number*b.Heads, area, area)
	} else {
		bias = g.View("spread", bias, number*b.Heads, area, area)
	}
	g.PerSample(bias)
	a := g.Attend("sdpa", q, k, v, b.Heads)
	g.Layers[a].Inputs = append(g.Layers[a].Inputs, bias)
	return b.drop(g, "dropout", g.Linear(b.Projections.Out, a, b.Width, b.BiasOut))
}

// windowScores adds attention within windows of area pixels in single operations, on
// copies that are contiguous per head.
func windowScores(g *graph.Graph, q, k, v, bias int, heads, area int64, shifted bool) int {
	n, width := g.Shape(q)[0], g.Last(q)
	each := []int64{heads, n, area}
	a := g.Op(models.MatMul, "scores", each, g.CopyOf("q.heads", q, n, width), g.CopyOf("k.heads", k, n, width))
	a = g.Op(models.Add, "bias.add", each, g.Scale("div", a), bias)
	if shifted {
		a = g.CopyOf("mask.add", a, each...)
	}
	a = g.Unary(models.Softmax, "softmax", a)
	a = g.Op(models.MatMul, "context", []int64{n, width}, a, g.CopyOf("v.heads", v, n, width))
	return g.CopyOf("contiguous", a, n, width)
}
