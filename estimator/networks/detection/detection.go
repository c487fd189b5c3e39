package detection

import (
	"fmt"
	"slices"

	"carma/configs/models"
	"carma/estimator/networks/graph"
	"carma/estimator/networks/vision"
)

// regions is the number of regions of an image. At most mostPositive of them contain an
// object. The actual number depends on the images; a training with many objects reaches
// the maximum. positive is a middle value.
const (
	regions      = 512
	mostPositive = 128
	positive     = 64
)

// rcnn is a network of torchvision in two stages: regions are proposed, then classified.
type rcnn struct {
	second bool // the second version: norms are trained, and heads are deeper
	masks  bool // the network also learns the outlines of objects
	rough  bool // everything is trained; no matching, sampling and box arithmetic
}

// MaskRCNNs returns Mask R-CNN (He et al. 2017) over a ResNet-50 with a feature pyramid,
// as trained by a measured workload.
func MaskRCNNs() graph.Group {
	return graph.Group{Name: "maskrcnn", Description: "detection and outlines of objects (Mask R-CNN)", Entries: []graph.Network{{
		Name: "maskrcnn", Aliases: []string{"maskrcnn_resnet50_fpn"}, Kind: models.Detection, Batch: 8,
		Size: graph.Sizes{Image: 800, Classes: 91}, Build: rcnn{masks: true, rough: true}.build,
	}}}
}

// Detectors returns torchvision's detection networks (0.29, models/detection) over a
// pretrained ResNet-50, whose stem and first stage are frozen.
func Detectors() graph.Group {
	c := graph.Group{Name: "rcnn", Description: "detection of objects (Faster R-CNN, Mask R-CNN, RetinaNet)"}
	for _, n := range []struct {
		name  string
		build func(*graph.Graph, graph.Sizes)
	}{
		{"fasterrcnn_resnet50_fpn", rcnn{}.build},
		{"fasterrcnn_resnet50_fpn_v2", rcnn{second: true}.build},
		// The library's name without _fixed is the name of a measured workload, which needs
		// almost twice as much memory, because all of its maskrcnn is trained.
		{"maskrcnn_resnet50_fpn_fixed", rcnn{masks: true}.build},
		{"maskrcnn_resnet50_fpn_v2", rcnn{second: true, masks: true}.build},
		{"retinanet_resnet50_fpn", retinaNet},
	} {
		c.Entries = append(c.Entries, graph.Network{Name: n.name, Kind: models.Detection, Batch: 4, Size: graph.Sizes{Image: 800, Classes: 91}, Build: n.build, Finish: vision.AsReferences})
	}
	return c
}

// scenes declares photos whose shorter side has s.image pixels, in the ratio 800 x 1333.
// The library combines them into one tensor, with both sides a multiple of 32.
func scenes(g *graph.Graph, s graph.Sizes) (image int) {
	side, h, w := sceneSizes(s)
	g.Input(0, 3, s.Image, side)
	g.Input(8, regions)
	return g.Op(models.Copy, "transform", []int64{3, h, w}, graph.Data)
}

// sceneSizes returns the longer side of such a photo, and both sides as padded by the
// network.
func sceneSizes(s graph.Sizes) (longer, h, w int64) {
	longer = s.Image * 1333 / 800
	return longer, up(s.Image, 32), up(longer, 32)
}

func (r rcnn) build(g *graph.Graph, s graph.Sizes) {
	x, use := graph.Data, vision.Trunk{}
	if r.rough { // photos have the network's input size
		_, h, w := sceneSizes(s)
		g.Input(0, 3, h, w)
		g.Input(8, regions)
	} else {
		x, use = scenes(g, s), vision.Trunk{Frozen: 1, Fixed: !r.second}
	}
	leave := g.Module("backbone.body")
	stages := vision.ResNet(g, x, "resnet50", use)
	leave()
	levels := r.pyramid(g, stages[1:])
	r.propose(g, levels)
	loss := r.boxes(g, levels[:4], s.Classes)
	if r.masks {
		loss = r.outlines(g, levels[:4], s.Classes)
	}
	if !r.rough {
		g.Total(loss) // the script keeps no scores
	}
}

// block adds a convolution, with a bias or, in the second version, with a batch norm.
func (r rcnn) block(g *graph.Graph, name string, in int, w graph.Window) int {
	w.Bias = !r.second
	x := g.Conv(name+".0", in, w)
	if r.second {
		x = g.BatchNorm(name+".1", x)
	}
	return x
}

// pyramid adds the coarse features to the finer ones, the finest first.
func (r rcnn) pyramid(g *graph.Graph, stages []int) []int {
	levels, held := features(g, stages, func(name string, in int, w graph.Window) int {
		if r.rough {
			w.Bias = true
			return g.Conv(name, in, w)
		}
		return r.block(g, name, in, w)
	})
	pool := g.MaxPool("backbone.fpn.extra_blocks", levels[len(levels)-1], graph.Window{Kernel: 1, Stride: 2})
	if !r.rough {
		g.Layers[pool].Holds = held
	}
	return append(levels, pool)
}

// features adds a feature pyramid (arXiv 1612.03144), with convolutions added by block.
// held lists the tensors that the library's function references until it returns: the
// stages, and the last sum with both its terms.
func features(g *graph.Graph, stages []int, block func(name string, in int, w graph.Window) int) (levels, held []int) {
	defer g.Module("backbone.fpn")()
	levels = make([]int, len(stages))
	var coarse int
	for i := len(stages) - 1; i >= 0; i-- {
		x := block(fmt.Sprintf("inner_blocks.%d", i), stages[i], graph.Window{Out: 256})
		if i < len(stages)-1 {
			larger := g.Op(models.Upsample, "interpolate", g.Shape(x), coarse)
			held = append(slices.Clone(stages), x, larger)
			x = g.Plus("add", x, larger)
		}
		coarse = x
		levels[i] = block(fmt.Sprintf("layer_blocks.%d", i), x, graph.W3(256))
	}
	return levels, append(held, coarse)
}

// shared marks the layers from index first on as users of the weights of an earlier
// level.
func shared(g *graph.Graph, level, first int) {
	for j := first; level > 0 && j < len(g.Layers); j++ {
		g.Layers[j].Tied = len(g.Layers[j].Params) > 0
	}
}

// rows copies an image with n numbers for each of k anchors into one row per anchor.
func rows(g *graph.Graph, name string, in int, n int64) int {
	s := g.Shape(in)
	return g.CopyOf(name, in, s[0]/n*s[1]*s[2], n)
}

// crop crops features of size x size for n regions from the levels. Here the regions form
// one tall image with the same number of elements.
func crop(g *graph.Graph, name string, levels []int, n, size int64) int {
	return g.Add(models.Layer{
		Name: name, Type: models.OtherLayer, Inputs: slices.Clone(levels), Out: []int64{256, n * size, size},
		Keeps: &models.Keeps{Bytes: n * 5 * 4},
	})
}

// propose applies one small network to each level. Its losses read few of the anchors.
func (r rcnn) propose(g *graph.Graph, levels []int) {
	defer g.Module("rpn.head")()
	depth := 1
	if r.second {
		depth = 2
	}
	var scores, boxes []int
	for i, x := range levels {
		first := len(g.Layers)
		for k := range depth {
			x = g.InPlace(models.ReLU, fmt.Sprintf("conv.%d.1", k), g.Conv(fmt.Sprintf("conv.%d.0", k), x, graph.W3Biased(256)))
		}
		score, box := g.Conv("cls_logits", x, graph.Window{Out: 3, Bias: true}), g.Conv("bbox_pred", x, graph.Window{Out: 12, Bias: true})
		shared(g, i, first)
		if r.rough {
			score, box = g.Flatten(score), g.Flatten(box)
		}
		scores, boxes = append(scores, score), append(boxes, box)
	}
	if r.rough { // the loss reads and keeps few of the numbers
		g.Keeping(g.Loss("loss", g.Concat("objectness", scores...), g.Concat("deltas", boxes...)), models.Keeps{})
		return
	}
	for i := range scores {
		scores[i], boxes[i] = rows(g, "objectness", scores[i], 1), rows(g, "deltas", boxes[i], 4)
	}
	g.Keeping(g.Loss("loss_rpn_box_reg", g.Concat("boxes", boxes...)), models.Keeps{})
	g.Keeping(g.Loss("loss_objectness", g.Concat("scores", scores...)), models.Keeps{})
}

// boxes classifies the regions.
func (r rcnn) boxes(g *graph.Graph, levels []int, classes int64) (loss int) {
	defer g.Module("roi_heads")()
	x := crop(g, "box_roi_pool", levels, regions, 7)
	if r.second {
		for i := range 4 {
			x = g.InPlace(models.ReLU, fmt.Sprintf("box_head.%d.2", i), r.block(g, fmt.Sprintf("box_head.%d", i), x, graph.W3(256)))
		}
		x = g.InPlace(models.ReLU, "box_head.6", g.Linear("box_head.5", g.View("box_head.4", x, regions, 256*7*7), 1024, true))
	} else {
		x = g.View("box_head.flatten", x, regions, 256*7*7)
		x = g.Unary(models.ReLU, "box_head.relu6", g.Linear("box_head.fc6", x, 1024, true))
		x = g.Unary(models.ReLU, "box_head.relu7", g.Linear("box_head.fc7", x, 1024, true))
	}
	scores := g.Linear("box_predictor.cls_score", x, classes, true)
	boxes := g.Linear("box_predictor.bbox_pred", x, 4*classes, true)
	loss = g.CrossEntropy("loss_classifier", scores, graph.Second)
	g.Keeping(g.Loss("loss_box_reg", boxes), models.Keeps{})
	return loss
}

// outlines learns the outlines of the regions with an object.
func (r rcnn) outlines(g *graph.Graph, levels []int, classes int64) (loss int) {
	defer g.Module("roi_heads")()
	of, relu := int64(mostPositive), 2
	if r.rough {
		of, relu = positive, 1
	}
	x := crop(g, "mask_roi_pool", levels, of, 14)
	for i := range 4 {
		x = g.InPlace(models.ReLU, fmt.Sprintf("mask_head.%d.%d", i, relu), r.block(g, fmt.Sprintf("mask_head.%d", i), x, graph.W3(256)))
	}
	x = g.InPlace(models.ReLU, "mask_predictor.relu", doubled(g, "mask_predictor.conv5_mask", x, 256))
	logits := g.Conv("mask_predictor.mask_fcn_logits", x, graph.Window{Out: classes, Bias: true})
	// For each region: one class, and the target outline.
	return g.Keeping(g.Loss("loss_mask", logits), models.Keeps{Bytes: 2 * 4 * of * 28 * 28})
}
