package detection

import (
	"fmt"

	"carma/configs/models"
	"carma/estimator/networks/graph"
)

// masks adds the part of a DETR that makes a mask for each query: small convolutions over
// the features, once per query. Here the queries of an image form one tall image with the
// same number of elements. The library copies all features for each query.
func (d *DETR) masks(g *graph.Graph, queries, tokens, image int, features []int) int {
	size := g.Shape(image)
	area, n := size[1]*size[2], d.Queries
	heads := d.Encoder.Heads
	each := func(name string, x int) int {
		s := g.Shape(x)
		switch {
		case d.one && d.cast: // autocast copies the features, and their gradient returns in 32 bits
			x = g.Keeping(g.Op(models.MatMul, name, []int64{s[0], n * s[1], s[2]}, g.View(name+".expand", x, s[0], n*s[1], s[2])), models.Keeps{})
			return x
		case d.one: // a single image needs no copies
			return g.View(name, x, s[0], n*s[1], s[2])
		}
		return g.CopyOf(name, x, s[0], n*s[1], s[2])
	}
	leave := g.Module("bbox_attention")
	q := g.Linear("q_proj", queries, d.Width, true)
	k := g.Conv("k_proj", g.View("memory", tokens, size...), graph.Window{Out: d.Width, Bias: true})
	q, k = g.Scale("scaling", g.CopyOf("q.heads", q, n, d.Width)), g.CopyOf("k.heads", k, area, d.Width)
	a := g.Op(models.MatMul, "scores", []int64{heads, n, area}, q, k)
	a = g.CopyOf("flatten", g.CopyOf("mask.add", a, heads, n*size[1], size[2]), heads, n*size[1], size[2])
	a = g.Unary(models.Softmax, "softmax", a)
	leave()
	defer g.Module("mask_head")()
	wide := each("features", image)
	var fine []int
	for i := range 3 {
		fine = append(fine, each(fmt.Sprintf("fpn_features.%d", i), features[len(features)-2-i]))
	}
	block := func(name string, x int, out int64) int {
		return g.Unary(d.Activation, name+".activation", g.GroupNorm(name+".norm", g.Conv(name+".conv", x, graph.W3Biased(out))))
	}
	x := block("conv1", g.Concat("cat", wide, a), d.Width+heads)
	x = block("conv2", x, d.Width/2)
	held := append([]int{wide, a}, fine...) // variables of the library's function
	for i, f := range fine {
		name := fmt.Sprintf("fpn_stages.%d", i)
		left := g.Conv(name+".fpn_adapter", f, graph.Window{Out: d.Width >> (i + 1), Bias: true})
		larger := g.Op(models.Upsample, name+".interpolate", g.Shape(left), x)
		sum := g.Plus(name+".add", left, larger)
		x = block(name+".refine", sum, d.Width>>(i+2))
		g.Layers[x].Holds = []int{left, larger, sum}
	}
	x = g.Conv("output_conv", x, graph.W3Biased(1))
	g.Layers[x].Holds = held
	s := g.Shape(x)
	return g.View("pred_masks", x, n, s[1]/n, s[2])
}
