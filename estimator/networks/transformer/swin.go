package transformer

import (
	"fmt"

	"carma/configs/models"
	"carma/estimator/networks/graph"
)

// side is the side of a window of attention.
const side = 7

// Swins returns the networks of Liu et al. 2021, as in torchvision: attention within
// windows, in single operations, with a learned bias.
func Swins() graph.Group {
	named := func(letter, long string, width, heads, third int64) graph.Network {
		e := graph.Classifier("swin_"+letter, "head", func(g *graph.Graph) int { return swin(g, width, heads, [4]int64{2, 2, third, 2}) })
		e.Kind = models.Transformer
		return e.Called("swin_"+long, "swin_"+long+"_patch4_window7_224")
	}
	return graph.Group{Name: "swin", Description: "transformers of shifted windows (Swin)", Entries: []graph.Network{
		named("t", "tiny", 96, 3, 6), named("s", "small", 96, 3, 18), named("b", "base", 128, 4, 18),
	}}
}

func swin(g *graph.Graph, width, heads int64, repeats [4]int64) int {
	x := g.Conv("features.0.0", graph.Data, graph.Window{Out: width, Kernel: 4, Stride: 4, Bias: true})
	x = g.LayerNorm("features.0.2", g.ChannelsLast(x))
	first := true
	for stage, n := range repeats {
		if stage > 0 {
			x = merge(g, fmt.Sprintf("features.%d", 2*stage), x)
		}
		for i := range n {
			x = swinBlock(g, fmt.Sprintf("features.%d.%d", 2*stage+1, i), x, heads<<stage, i%2 == 1, !first)
			first = false
		}
	}
	return g.Flatten(g.Mean("avgpool", g.ChannelsFirst(g.LayerNorm("norm", x))))
}

// merge joins squares of four pixels. An odd image is padded.
func merge(g *graph.Graph, name string, in int) int {
	defer g.Module(name)()
	s := g.Shape(in)
	h, w, c := (s[0]+1)/2, (s[1]+1)/2, s[2]
	x := g.Op(models.Pad, "pad", []int64{2 * h, 2 * w, c}, in)
	x = g.Op(models.Concat, "concat", []int64{h, w, 4 * c}, x, x, x, x)
	return g.Linear("reduction", g.LayerNorm("norm", x), 2*c, false)
}

func swinBlock(g *graph.Graph, name string, in int, heads int64, shifted, skip bool) int {
	defer g.StartBlock(name)()
	width := g.Last(in)
	x := windows(g, g.LayerNorm("norm1", in), heads, shifted)
	if skip {
		x = g.Skip("stochastic_depth1", x)
	}
	in = g.Plus("add1", in, x)
	x = g.Unary(models.GELU, "mlp.1", g.Linear("mlp.0", g.LayerNorm("norm2", in), 4*width, true))
	x = g.Linear("mlp.3", x, width, true)
	if skip {
		x = g.Skip("stochastic_depth2", x)
	}
	return g.Plus("add2", in, x)
}

// windows adds attention within windows of 7 x 7 pixels.
func windows(g *graph.Graph, in int, heads int64, shifted bool) int {
	defer g.Module("attn")()
	s := g.Shape(in)
	width := s[2]
	padded := []int64{(s[0] + side - 1) / side * side, (s[1] + side - 1) / side * side, width}
	shifted = shifted && padded[0] > side // a single window is not shifted
	n := padded[0] / side * (padded[1] / side)
	x := g.Op(models.Pad, "pad", padded, in)
	if shifted {
		x = g.CopyOf("roll", x, padded...)
	}
	x = g.CopyOf("partition", x, n, side*side, width)
	q, k, v := g.ThreeWay(g.Adapted("qkv", x, 3*width, true), width)
	// The products take contiguous copies of query, key and value.
	q = g.CopyOf("q.contiguous", g.Scale("q.scale", q), n, side*side, width)
	k = g.CopyOf("k.contiguous", k, n, side*side, width)
	scores := []int64{n, heads, side * side, side * side}
	a := g.Op(models.MatMul, "scores", scores, q, k)
	table := g.Table("relative_position_bias_table", (2*side-1)*(2*side-1), heads)
	bias := g.CopyOf("relative_position_bias", table, heads, side*side, side*side)
	a = g.Plus("bias.add", a, bias)
	if shifted {
		a = g.Unary(models.Add, "mask.add", a)
	}
	a = g.Unary(models.Softmax, "softmax", a)
	v = g.CopyOf("v.contiguous", v, n, side*side, width)
	x = g.CopyOf("transpose", g.Op(models.MatMul, "weighted", []int64{n, heads, side * side, width / heads}, a, v),
		n, side*side, width)
	x = g.CopyOf("reverse", g.Linear("proj", x, width, true), padded...)
	if shifted {
		x = g.CopyOf("unroll", x, padded...)
	}
	if padded[0] == s[0] && padded[1] == s[1] {
		return x
	}
	return g.CopyOf("unpad", x, s...)
}
