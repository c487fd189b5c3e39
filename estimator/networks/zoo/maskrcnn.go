package zoo

import (
	"fmt"
	"slices"

	"carma/configs/models"
)

// Mask R-CNN learns from 512 regions of an image. The number of regions with an
// object depends on the images and is at most 128; positive is a middle value.
const (
	regions  = 512
	positive = 64
)

// detection has Mask R-CNN (He et al. 2017) over a ResNet-50 with a feature
// pyramid, whose batch norms are trained. It is an approximation without
// matching, sampling and box arithmetic.
func detection() group {
	return group{name: "maskrcnn", description: "detection and outlines of objects (Mask R-CNN)", entries: []entry{{
		name: "maskrcnn", aliases: []string{"maskrcnn_resnet50_fpn"}, kind: models.Detection, batch: 8,
		size: settings{image: 800, classes: 91}, build: maskRCNN,
	}}}
}

func maskRCNN(g *graph, s settings) {
	// The image size is the short side of a photo of 800 x 1333. Both sides are
	// padded.
	up := func(n int64) int64 { return (n + 31) / 32 * 32 }
	g.input(0, 3, up(s.image), up(s.image*1333/800))
	g.input(8, regions)
	leave := g.module("backbone.body")
	stages := g.resnet(data, resnet50)
	leave()
	levels := g.pyramid(stages[1:])
	g.proposals(levels)
	g.boxes(levels[:4], s.classes)
	g.masks(levels[:4], s.classes)
}

// pyramid adds the coarse features to the finer ones, the finest first.
func (g *graph) pyramid(stages []int) []int {
	defer g.module("backbone.fpn")()
	levels := make([]int, len(stages))
	var coarse int
	for i := len(stages) - 1; i >= 0; i-- {
		x := g.conv(fmt.Sprintf("inner_blocks.%d", i), stages[i], window{out: 256, bias: true})
		if i < len(stages)-1 {
			larger := g.op(models.Upsample, "interpolate", g.shape(x), coarse)
			x = g.plus("add", x, larger)
		}
		coarse = x
		levels[i] = g.conv(fmt.Sprintf("layer_blocks.%d", i), x, window{out: 256, kernel: 3, pad: 1, bias: true})
	}
	return append(levels, g.maxPool("extra_blocks", levels[len(levels)-1], window{kernel: 1, stride: 2}))
}

// proposals applies one small network to each level.
func (g *graph) proposals(levels []int) {
	defer g.module("rpn.head")()
	var scores, boxes []int
	for i, level := range levels {
		first := len(g.layers)
		x := g.conv("conv.0.0", level, window{out: 256, kernel: 3, pad: 1, bias: true})
		x = g.inPlace(models.ReLU, "conv.0.1", x)
		score := g.conv("cls_logits", x, window{out: 3, bias: true})
		box := g.conv("bbox_pred", x, window{out: 12, bias: true})
		for j := first; i > 0 && j < len(g.layers); j++ {
			g.layers[j].Tied = len(g.layers[j].Params) > 0
		}
		scores, boxes = append(scores, g.flatten(score)), append(boxes, g.flatten(box))
	}
	// The losses read few of all numbers, and keep those.
	g.keeping(g.loss("loss", g.concat("objectness", scores...), g.concat("deltas", boxes...)), models.Keeps{})
}

// crop cuts features of size x size for n regions out of the levels. Here the
// regions form one tall image, which has the same number of elements.
func (g *graph) crop(name string, levels []int, n, size int64) int {
	return g.add(models.Layer{
		Name: name, Type: models.OtherLayer, Inputs: slices.Clone(levels), Out: []int64{256, n * size, size},
		Keeps: &models.Keeps{Bytes: n * 5 * 4},
	})
}

func (g *graph) boxes(levels []int, classes int64) {
	defer g.module("roi_heads")()
	x := g.view("box_head.flatten", g.crop("box_roi_pool", levels, regions, 7), regions, 256*7*7)
	x = g.unary(models.ReLU, "box_head.relu6", g.linear("box_head.fc6", x, 1024, true))
	x = g.unary(models.ReLU, "box_head.relu7", g.linear("box_head.fc7", x, 1024, true))
	scores := g.linear("box_predictor.cls_score", x, classes, true)
	boxes := g.linear("box_predictor.bbox_pred", x, 4*classes, true)
	g.crossEntropy("loss_classifier", scores, second)
	g.keeping(g.loss("loss_box_reg", boxes), models.Keeps{})
}

func (g *graph) masks(levels []int, classes int64) {
	defer g.module("roi_heads")()
	x := g.crop("mask_roi_pool", levels, positive, 14)
	for i := range 4 {
		x = g.conv(fmt.Sprintf("mask_head.%d.0", i), x, window{out: 256, kernel: 3, pad: 1, bias: true})
		x = g.inPlace(models.ReLU, fmt.Sprintf("mask_head.%d.1", i), x)
	}
	s := g.shape(x)
	x = g.add(models.Layer{
		Name: "mask_predictor.conv5_mask", Type: models.ConvTranspose, Inputs: []int{x},
		Out: []int64{256, 2 * s[1], 2 * s[2]}, Params: []int64{256 * 256 * 2 * 2, 256}, Kernel: []int64{2, 2}, Stride: 2,
	})
	x = g.inPlace(models.ReLU, "mask_predictor.relu", x)
	logits := g.conv("mask_predictor.mask_fcn_logits", x, window{out: classes, bias: true})
	// For each region: one class, and the outline to learn.
	g.keeping(g.loss("loss_mask", logits), models.Keeps{Bytes: 2 * 4 * positive * 28 * 28})
}
