package zoo

import (
	"fmt"
	"slices"

	"carma/configs/models"
)

// An image's regions are regions; at most mostPositive of them have an object. How many
// have depends on the images; a training with many objects reaches it. positive is a
// middle value.
const (
	regions      = 512
	mostPositive = 128
	positive     = 64
)

// rcnn is a network of torchvision in two stages: regions are proposed, then classified.
type rcnn struct {
	second bool // the second version: norms are trained, and heads are deeper
	masks  bool // outlines of the objects are learned too
	rough  bool // all is trained; without matching, sampling and box arithmetic
}

// maskRCNNs has Mask R-CNN (He et al. 2017) over a ResNet-50 with a feature pyramid, as a
// measured workload trains it.
func maskRCNNs() group {
	return group{name: "maskrcnn", description: "detection and outlines of objects (Mask R-CNN)", entries: []entry{{
		name: "maskrcnn", aliases: []string{"maskrcnn_resnet50_fpn"}, kind: models.Detection, batch: 8,
		size: settings{image: 800, classes: 91}, build: rcnn{masks: true, rough: true}.build,
	}}}
}

// detectors are torchvision's networks for detection (0.29, models/detection) over a
// ResNet-50 that was trained before: its stem and first stage are frozen.
func detectors() group {
	c := group{name: "rcnn", description: "detection of objects (Faster R-CNN, Mask R-CNN, RetinaNet)"}
	for _, n := range []struct {
		name  string
		build func(*graph, settings)
	}{
		{"fasterrcnn_resnet50_fpn", rcnn{}.build},
		{"fasterrcnn_resnet50_fpn_v2", rcnn{second: true}.build},
		// The library's name without _fixed is that of a measured workload, which needs
		// almost twice as much: maskrcnn, all of which is trained.
		{"maskrcnn_resnet50_fpn_fixed", rcnn{masks: true}.build},
		{"maskrcnn_resnet50_fpn_v2", rcnn{second: true, masks: true}.build},
		{"retinanet_resnet50_fpn", retinaNet},
	} {
		c.entries = append(c.entries, entry{name: n.name, kind: models.Detection, batch: 4, size: settings{image: 800, classes: 91}, build: n.build, finish: asReferences})
	}
	return c
}

// scenes declares photos whose shorter side has s.image pixels, of the shape 800 x 1333.
// The library puts them together into one tensor, with both sides a multiple of 32.
func (g *graph) scenes(s settings) (image int) {
	side, h, w := sceneSizes(s)
	g.input(0, 3, s.image, side)
	g.input(8, regions)
	return g.op(models.Copy, "transform", []int64{3, h, w}, data)
}

// sceneSizes are the longer side of such a photo, and both sides as the network takes
// them.
func sceneSizes(s settings) (longer, h, w int64) {
	longer = s.image * 1333 / 800
	return longer, up(s.image, 32), up(longer, 32)
}

func (r rcnn) build(g *graph, s settings) {
	x, use := data, trunk{}
	if r.rough { // photos are as large as the network takes them
		_, h, w := sceneSizes(s)
		g.input(0, 3, h, w)
		g.input(8, regions)
	} else {
		x, use = g.scenes(s), trunk{frozen: 1, fixed: !r.second}
	}
	leave := g.module("backbone.body")
	stages := g.resnetAs(x, resnet50, use)
	leave()
	levels := r.pyramid(g, stages[1:])
	r.propose(g, levels)
	loss := r.boxes(g, levels[:4], s.classes)
	if r.masks {
		loss = r.outlines(g, levels[:4], s.classes)
	}
	if !r.rough {
		g.total(loss) // the script holds no scores
	}
}

// block is a convolution, in the second version with a batch norm instead of its bias.
func (r rcnn) block(g *graph, name string, in int, w window) int {
	w.bias = !r.second
	x := g.conv(name+".0", in, w)
	if r.second {
		x = g.batchNorm(name+".1", x)
	}
	return x
}

// pyramid adds the coarse features to the finer ones, the finest first.
func (r rcnn) pyramid(g *graph, stages []int) []int {
	levels, held := g.features(stages, func(name string, in int, w window) int {
		if r.rough {
			w.bias = true
			return g.conv(name, in, w)
		}
		return r.block(g, name, in, w)
	})
	pool := g.maxPool("backbone.fpn.extra_blocks", levels[len(levels)-1], window{kernel: 1, stride: 2})
	if !r.rough {
		g.layers[pool].Holds = held
	}
	return append(levels, pool)
}

// features is a pyramid (arXiv 1612.03144) whose convolutions block adds. held is what
// the library's function refers to until it returns: the stages, and the last sum with
// both its terms.
func (g *graph) features(stages []int, block func(name string, in int, w window) int) (levels, held []int) {
	defer g.module("backbone.fpn")()
	levels = make([]int, len(stages))
	var coarse int
	for i := len(stages) - 1; i >= 0; i-- {
		x := block(fmt.Sprintf("inner_blocks.%d", i), stages[i], window{out: 256})
		if i < len(stages)-1 {
			larger := g.op(models.Upsample, "interpolate", g.shape(x), coarse)
			held = append(slices.Clone(stages), x, larger)
			x = g.plus("add", x, larger)
		}
		coarse = x
		levels[i] = block(fmt.Sprintf("layer_blocks.%d", i), x, w3(256))
	}
	return levels, append(held, coarse)
}

// shared marks the layers from first on as users of the weights of an earlier level.
func (g *graph) shared(level, first int) {
	for j := first; level > 0 && j < len(g.layers); j++ {
		g.layers[j].Tied = len(g.layers[j].Params) > 0
	}
}

// rows copies an image of n numbers for each of k anchors into one row for each anchor.
func (g *graph) rows(name string, in int, n int64) int {
	s := g.shape(in)
	return g.copyOf(name, in, s[0]/n*s[1]*s[2], n)
}

// crop cuts features of size x size for n regions out of the levels. Here the
// regions form one tall image, which has the same number of elements.
func (g *graph) crop(name string, levels []int, n, size int64) int {
	return g.add(models.Layer{
		Name: name, Type: models.OtherLayer, Inputs: slices.Clone(levels), Out: []int64{256, n * size, size},
		Keeps: &models.Keeps{Bytes: n * 5 * 4},
	})
}

// propose applies one small network to each level. Its losses read few of the anchors.
func (r rcnn) propose(g *graph, levels []int) {
	defer g.module("rpn.head")()
	depth := 1
	if r.second {
		depth = 2
	}
	var scores, boxes []int
	for i, x := range levels {
		first := len(g.layers)
		for k := range depth {
			x = g.inPlace(models.ReLU, fmt.Sprintf("conv.%d.1", k), g.conv(fmt.Sprintf("conv.%d.0", k), x, w3Biased(256)))
		}
		score, box := g.conv("cls_logits", x, window{out: 3, bias: true}), g.conv("bbox_pred", x, window{out: 12, bias: true})
		g.shared(i, first)
		if r.rough {
			score, box = g.flatten(score), g.flatten(box)
		}
		scores, boxes = append(scores, score), append(boxes, box)
	}
	if r.rough { // the loss reads few of all numbers, and keeps those
		g.keeping(g.loss("loss", g.concat("objectness", scores...), g.concat("deltas", boxes...)), models.Keeps{})
		return
	}
	for i := range scores {
		scores[i], boxes[i] = g.rows("objectness", scores[i], 1), g.rows("deltas", boxes[i], 4)
	}
	g.keeping(g.loss("loss_rpn_box_reg", g.concat("boxes", boxes...)), models.Keeps{})
	g.keeping(g.loss("loss_objectness", g.concat("scores", scores...)), models.Keeps{})
}

// boxes classifies the regions.
func (r rcnn) boxes(g *graph, levels []int, classes int64) (loss int) {
	defer g.module("roi_heads")()
	x := g.crop("box_roi_pool", levels, regions, 7)
	if r.second {
		for i := range 4 {
			x = g.inPlace(models.ReLU, fmt.Sprintf("box_head.%d.2", i), r.block(g, fmt.Sprintf("box_head.%d", i), x, w3(256)))
		}
		x = g.inPlace(models.ReLU, "box_head.6", g.linear("box_head.5", g.view("box_head.4", x, regions, 256*7*7), 1024, true))
	} else {
		x = g.view("box_head.flatten", x, regions, 256*7*7)
		x = g.unary(models.ReLU, "box_head.relu6", g.linear("box_head.fc6", x, 1024, true))
		x = g.unary(models.ReLU, "box_head.relu7", g.linear("box_head.fc7", x, 1024, true))
	}
	scores := g.linear("box_predictor.cls_score", x, classes, true)
	boxes := g.linear("box_predictor.bbox_pred", x, 4*classes, true)
	loss = g.crossEntropy("loss_classifier", scores, second)
	g.keeping(g.loss("loss_box_reg", boxes), models.Keeps{})
	return loss
}

// outlines learns the outline of the regions that have an object.
func (r rcnn) outlines(g *graph, levels []int, classes int64) (loss int) {
	defer g.module("roi_heads")()
	of, relu := int64(mostPositive), 2
	if r.rough {
		of, relu = positive, 1
	}
	x := g.crop("mask_roi_pool", levels, of, 14)
	for i := range 4 {
		x = g.inPlace(models.ReLU, fmt.Sprintf("mask_head.%d.%d", i, relu), r.block(g, fmt.Sprintf("mask_head.%d", i), x, w3(256)))
	}
	x = g.inPlace(models.ReLU, "mask_predictor.relu", g.doubled("mask_predictor.conv5_mask", x, 256))
	logits := g.conv("mask_predictor.mask_fcn_logits", x, window{out: classes, bias: true})
	// For each region: one class, and the outline to learn.
	return g.keeping(g.loss("loss_mask", logits), models.Keeps{Bytes: 2 * 4 * of * 28 * 28})
}
