package detection

import (
	"fmt"

	"carma/configs/models"
	"carma/estimator/networks/graph"
	"carma/estimator/networks/vision"
)

// retinaNet adds the network of Lin et al. 2017 (arXiv 1708.02002). It classifies each
// anchor of each level, so its loss has as many scores as anchors times classes.
func retinaNet(g *graph.Graph, s graph.Sizes) {
	x := scenes(g, s)
	leave := g.Module("backbone.body")
	stages := vision.ResNet(g, x, "resnet50", vision.Trunk{Frozen: 1, Fixed: true})
	leave()
	levels, held := features(g, stages[2:], func(name string, in int, w graph.Window) int {
		w.Bias = true
		return g.Conv(name+".0", in, w)
	})
	wide := graph.Window{Out: 256, Kernel: 3, Stride: 2, Pad: 1, Bias: true}
	p6 := g.Conv("backbone.fpn.extra_blocks.p6", levels[2], wide)
	p7 := g.Conv("backbone.fpn.extra_blocks.p7", g.Unary(models.ReLU, "backbone.fpn.extra_blocks.relu", p6), wide)
	g.Layers[p7].Holds = held
	levels = append(levels, p6, p7)
	const anchors = 9
	scores := tower(g, "head.classification_head", "cls_logits", levels, anchors, s.Classes)
	boxes := tower(g, "head.regression_head", "bbox_reg", levels, anchors, 4)
	leave = g.Module("loss")
	loss := focalLoss(g, scores)
	// Few anchors have an object.
	g.Keeping(g.Loss("bbox_regression", boxes), models.Keeps{})
	g.Total(loss)
	leave()
}

// tower applies four convolutions and a last one to each level, and concatenates the n
// numbers of each anchor.
func tower(g *graph.Graph, name, last string, levels []int, anchors, n int64) int {
	defer g.Module(name)()
	var all []int
	for i, x := range levels {
		first := len(g.Layers)
		for k := range 4 {
			x = g.InPlace(models.ReLU, fmt.Sprintf("conv.%d.1", k), g.Conv(fmt.Sprintf("conv.%d.0", k), x, graph.W3Biased(256)))
		}
		x = g.Conv(last, x, graph.W3Biased(anchors*n))
		shared(g, i, first)
		all = append(all, rows(g, "rows", x, n))
	}
	return g.Concat("cat", all...)
}

// focalLoss adds torchvision's sigmoid_focal_loss, in single operations. They keep the
// tensors for their gradients: p, the targets and their complement, the cross-entropy, 1
// - p_t, its square, and the weights of the targets.
func focalLoss(g *graph.Graph, scores int) int {
	s := g.Shape(scores)
	x := g.CopyOf("valid", scores, s...)
	// These numbers need no gradient, and have as many bits as the scores.
	targets := g.Keeping(g.Op(models.MatMul, "targets", s, graph.Data), models.Keeps{})
	constant := func(name string) int { return g.Op(models.OtherLayer, name, s, targets) }
	p := g.Unary(models.Sigmoid, "p", x)
	// In 32 bits, like a power.
	ce := g.Keeping(g.Op(models.Pow, "ce_loss", s, x, targets), models.Keeps{Wide: []int{0, 1}})
	a := g.Keeping(g.Times("p_t.1", p, targets), models.Keeps{Inputs: []int{1}})
	not := g.Keeping(g.Unary(models.OtherLayer, "1-p", p), models.Keeps{})
	b := g.Keeping(g.Times("p_t.2", not, constant("1-targets")), models.Keeps{Inputs: []int{1}})
	rest := g.Keeping(g.Unary(models.OtherLayer, "1-p_t", g.Plus("p_t", a, b)), models.Keeps{})
	loss := g.Times("loss", ce, g.Unary(models.Pow, "square", rest))
	// The library processes one image at a time, so its memory at any time is less than the
	// count for all images. In-place operations account for that.
	loss = g.Keeping(g.Times("weighted", loss, constant("alpha_t")), models.Keeps{Inputs: []int{1}})
	g.Layers[loss].InPlace = true
	i := g.Keeping(g.Loss("classification", loss), models.Keeps{})
	g.Layers[i].Holds = []int{scores} // the outputs of all images, which the loss copies
	return i
}
