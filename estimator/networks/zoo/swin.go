package zoo

import (
	"fmt"

	"carma/configs/models"
)

// side is the length of a window of attention.
const side = 7

// swins are of Liu et al. 2021, as in torchvision: attention within windows, in
// single operations, with a learned bias.
func swins() group {
	c := group{name: "swin", description: "transformers of shifted windows (Swin)"}
	for _, v := range []struct {
		name                string
		width, heads, third int64
	}{
		{"t", 96, 3, 6}, {"s", 96, 3, 18}, {"b", 128, 4, 18},
	} {
		long := map[string]string{"t": "tiny", "s": "small", "b": "base"}[v.name]
		e := classifier("swin_"+v.name, "head", func(g *graph) int { return g.swin(v.width, v.heads, [4]int64{2, 2, v.third, 2}) })
		e.kind = models.Transformer
		c.entries = append(c.entries, e.called("swin_"+long, "swin_"+long+"_patch4_window7_224"))
	}
	return c
}

func (g *graph) swin(width, heads int64, repeats [4]int64) int {
	x := g.conv("features.0.0", data, window{out: width, kernel: 4, stride: 4, bias: true})
	x = g.layerNorm("features.0.2", g.channelsLast(x))
	first := true
	for stage, n := range repeats {
		if stage > 0 {
			x = g.merge(fmt.Sprintf("features.%d", 2*stage), x)
		}
		for i := range n {
			x = g.swinBlock(fmt.Sprintf("features.%d.%d", 2*stage+1, i), x, heads<<stage, i%2 == 1, !first)
			first = false
		}
	}
	return g.flatten(g.mean("avgpool", g.channelsFirst(g.layerNorm("norm", x))))
}

// merge joins squares of four pixels. An odd image is padded.
func (g *graph) merge(name string, in int) int {
	defer g.module(name)()
	s := g.shape(in)
	h, w, c := (s[0]+1)/2, (s[1]+1)/2, s[2]
	x := g.op(models.Pad, "pad", []int64{2 * h, 2 * w, c}, in)
	x = g.op(models.Concat, "concat", []int64{h, w, 4 * c}, x, x, x, x)
	return g.linear("reduction", g.layerNorm("norm", x), 2*c, false)
}

func (g *graph) swinBlock(name string, in int, heads int64, shifted, skip bool) int {
	defer g.startBlock(name)()
	width := g.last(in)
	x := g.windows(g.layerNorm("norm1", in), heads, shifted)
	if skip {
		x = g.skip("stochastic_depth1", x)
	}
	in = g.plus("add1", in, x)
	x = g.unary(models.GELU, "mlp.1", g.linear("mlp.0", g.layerNorm("norm2", in), 4*width, true))
	x = g.linear("mlp.3", x, width, true)
	if skip {
		x = g.skip("stochastic_depth2", x)
	}
	return g.plus("add2", in, x)
}

// windows adds attention within windows of 7 x 7 pixels.
func (g *graph) windows(in int, heads int64, shifted bool) int {
	defer g.module("attn")()
	s := g.shape(in)
	width := s[2]
	padded := []int64{(s[0] + side - 1) / side * side, (s[1] + side - 1) / side * side, width}
	shifted = shifted && padded[0] > side // a single window is not shifted
	n := padded[0] / side * (padded[1] / side)
	x := g.op(models.Pad, "pad", padded, in)
	if shifted {
		x = g.copyOf("roll", x, padded...)
	}
	x = g.copyOf("partition", x, n, side*side, width)
	q, k, v := g.threeWay(g.adapted("qkv", x, 3*width, true), width)
	// The products take contiguous copies of query, key and value.
	q = g.copyOf("q.contiguous", g.scale("q.scale", q), n, side*side, width)
	k = g.copyOf("k.contiguous", k, n, side*side, width)
	scores := []int64{n, heads, side * side, side * side}
	a := g.op(models.MatMul, "scores", scores, q, k)
	table := g.table("relative_position_bias_table", (2*side-1)*(2*side-1), heads)
	bias := g.copyOf("relative_position_bias", table, heads, side*side, side*side)
	a = g.plus("bias.add", a, bias)
	if shifted {
		a = g.unary(models.Add, "mask.add", a)
	}
	a = g.unary(models.Softmax, "softmax", a)
	v = g.copyOf("v.contiguous", v, n, side*side, width)
	x = g.copyOf("transpose", g.op(models.MatMul, "weighted", []int64{n, heads, side * side, width / heads}, a, v),
		n, side*side, width)
	x = g.copyOf("reverse", g.linear("proj", x, width, true), padded...)
	if shifted {
		x = g.copyOf("unroll", x, padded...)
	}
	if padded[0] == s[0] && padded[1] == s[1] {
		return x
	}
	return g.copyOf("unpad", x, s...)
}
