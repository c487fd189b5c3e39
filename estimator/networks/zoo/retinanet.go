package zoo

import (
	"fmt"

	"carma/configs/models"
)

// retinaNet is of Lin et al. 2017 (arXiv 1708.02002): each anchor of each level is
// classified, so its loss takes as many scores as there are anchors times classes.
func retinaNet(g *graph, s settings) {
	x := g.scenes(s)
	leave := g.module("backbone.body")
	stages := g.resnetAs(x, resnet50, trunk{frozen: 1, fixed: true})
	leave()
	levels, held := g.features(stages[2:], func(name string, in int, w window) int {
		w.bias = true
		return g.conv(name+".0", in, w)
	})
	wide := window{out: 256, kernel: 3, stride: 2, pad: 1, bias: true}
	p6 := g.conv("backbone.fpn.extra_blocks.p6", levels[2], wide)
	p7 := g.conv("backbone.fpn.extra_blocks.p7", g.unary(models.ReLU, "backbone.fpn.extra_blocks.relu", p6), wide)
	g.layers[p7].Holds = held
	levels = append(levels, p6, p7)
	const anchors = 9
	scores := g.tower("head.classification_head", "cls_logits", levels, anchors, s.classes)
	boxes := g.tower("head.regression_head", "bbox_reg", levels, anchors, 4)
	leave = g.module("loss")
	loss := g.focalLoss(scores)
	// Few anchors have an object.
	g.keeping(g.loss("bbox_regression", boxes), models.Keeps{})
	g.total(loss)
	leave()
}

// tower applies four convolutions and a last one to each level, and joins n numbers for
// each anchor.
func (g *graph) tower(name, last string, levels []int, anchors, n int64) int {
	defer g.module(name)()
	var all []int
	for i, x := range levels {
		first := len(g.layers)
		for k := range 4 {
			x = g.inPlace(models.ReLU, fmt.Sprintf("conv.%d.1", k), g.conv(fmt.Sprintf("conv.%d.0", k), x, w3Biased(256)))
		}
		x = g.conv(last, x, w3Biased(anchors*n))
		g.shared(i, first)
		all = append(all, g.rows("rows", x, n))
	}
	return g.concat("cat", all...)
}

// focalLoss is torchvision's sigmoid_focal_loss, in single operations. Each keeps what
// its gradient needs: p, the targets and their complement, the cross-entropy, 1 - p_t,
// its square, and the weights of the targets.
func (g *graph) focalLoss(scores int) int {
	s := g.shape(scores)
	x := g.copyOf("valid", scores, s...)
	// Numbers that need no gradient, of as many bits as the scores.
	targets := g.keeping(g.op(models.MatMul, "targets", s, data), models.Keeps{})
	constant := func(name string) int { return g.op(models.OtherLayer, name, s, targets) }
	p := g.unary(models.Sigmoid, "p", x)
	// In 32 bits, as a power is.
	ce := g.keeping(g.op(models.Pow, "ce_loss", s, x, targets), models.Keeps{Wide: []int{0, 1}})
	a := g.keeping(g.times("p_t.1", p, targets), models.Keeps{Inputs: []int{1}})
	not := g.keeping(g.unary(models.OtherLayer, "1-p", p), models.Keeps{})
	b := g.keeping(g.times("p_t.2", not, constant("1-targets")), models.Keeps{Inputs: []int{1}})
	rest := g.keeping(g.unary(models.OtherLayer, "1-p_t", g.plus("p_t", a, b)), models.Keeps{})
	loss := g.times("loss", ce, g.unary(models.Pow, "square", rest))
	// The library goes image by image, so that less is there at a time than is counted
	// for all images. In place stands for that.
	loss = g.keeping(g.times("weighted", loss, constant("alpha_t")), models.Keeps{Inputs: []int{1}})
	g.layers[loss].InPlace = true
	i := g.keeping(g.loss("classification", loss), models.Keeps{})
	g.layers[i].Holds = []int{scores} // the outputs of all images, of which the loss takes copies
	return i
}
