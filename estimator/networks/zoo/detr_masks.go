package zoo

import (
	"fmt"

	"carma/configs/models"
)

// masks is the part of a DETR that makes a mask of each query: small convolutions over the
// features, once for each query. The queries of an image form one tall image here, which
// has the same number of elements. The library copies all features for each query.
func (d *DETR) masks(g *graph, queries, tokens, image int, features []int) int {
	size := g.shape(image)
	area, n := size[1]*size[2], d.Queries
	heads := d.Encoder.Heads
	each := func(name string, x int) int {
		s := g.shape(x)
		switch {
		case d.one && d.cast: // autocast copies them, and their gradient comes back in 32 bits
			x = g.keeping(g.op(models.MatMul, name, []int64{s[0], n * s[1], s[2]}, g.view(name+".expand", x, s[0], n*s[1], s[2])), models.Keeps{})
			return x
		case d.one: // of one image they need no copies
			return g.view(name, x, s[0], n*s[1], s[2])
		}
		return g.copyOf(name, x, s[0], n*s[1], s[2])
	}
	leave := g.module("bbox_attention")
	q := g.linear("q_proj", queries, d.Width, true)
	k := g.conv("k_proj", g.view("memory", tokens, size...), window{out: d.Width, bias: true})
	q, k = g.scale("scaling", g.copyOf("q.heads", q, n, d.Width)), g.copyOf("k.heads", k, area, d.Width)
	a := g.op(models.MatMul, "scores", []int64{heads, n, area}, q, k)
	a = g.copyOf("flatten", g.copyOf("mask.add", a, heads, n*size[1], size[2]), heads, n*size[1], size[2])
	a = g.unary(models.Softmax, "softmax", a)
	leave()
	defer g.module("mask_head")()
	wide := each("features", image)
	var fine []int
	for i := range 3 {
		fine = append(fine, each(fmt.Sprintf("fpn_features.%d", i), features[len(features)-2-i]))
	}
	block := func(name string, x int, out int64) int {
		return g.unary(d.Activation, name+".activation", g.groupNorm(name+".norm", g.conv(name+".conv", x, w3Biased(out))))
	}
	x := block("conv1", g.concat("cat", wide, a), d.Width+heads)
	x = block("conv2", x, d.Width/2)
	held := append([]int{wide, a}, fine...) // variables of the library's function
	for i, f := range fine {
		name := fmt.Sprintf("fpn_stages.%d", i)
		left := g.conv(name+".fpn_adapter", f, window{out: d.Width >> (i + 1), bias: true})
		larger := g.op(models.Upsample, name+".interpolate", g.shape(left), x)
		sum := g.plus(name+".add", left, larger)
		x = block(name+".refine", sum, d.Width>>(i+2))
		g.layers[x].Holds = []int{left, larger, sum}
	}
	x = g.conv("output_conv", x, w3Biased(1))
	g.layers[x].Holds = held
	s := g.shape(x)
	return g.view("pred_masks", x, n, s[1]/n, s[2])
}
