package detection

import (
	"fmt"
	"strings"

	"carma/configs/models"
	"carma/estimator/networks/graph"
)

// yoloObjects is the largest number of objects in an image; the trainer combines four
// images into one. While anchors are assigned, tables of anchors times objects are held.
const yoloObjects = 50

// yoloOwn is the number of an image's anchors that learn a mask: ten for each of 25
// objects (tal_topk).
const yoloOwn = 250

// yoloMasks is the number of masks of an image. Each object's mask is a weighted sum of
// them.
const yoloMasks = 32

// outputs contains the outputs of a head: for each anchor the distributions of its box's
// distances, the scores of the classes, and the factors of the masks, or 0 without masks.
// The masks belong to the image.
type outputs struct{ boxes, scores, factors, masks int }

// yoloHead computes the outputs for three levels.
type yoloHead struct {
	classes int64
	light   bool // scores use depthwise convolutions (YOLO11 and YOLOv10 on)
	masks   bool // objects have masks (Segment)
	twice   bool // a second head learns one anchor for each object, on features without a gradient (YOLOv10)
}

// train adds the head and its losses.
func (h yoloHead) train(g *graph.Graph, levels []int) {
	o := h.outputs(g, "", levels)
	if h.masks {
		o.masks = sharedMasks(g, levels[0])
	}
	if !h.twice {
		loss := yoloLoss(g, "loss", o, false, nil)
		if h.masks {
			loss = maskLoss(g, o)
		}
		g.Total(loss) // the script keeps no outputs
		return
	}
	single := h.outputs(g, "one2one_", levels)
	yoloLoss(g, "loss", o, false, single.held())
	g.Total(yoloLoss(g, "one2one_loss", single, true, o.held()))
}

// held returns the outputs that the program references until the losses are known.
func (o outputs) held() []int {
	held := []int{o.boxes, o.scores}
	if o.factors > 0 {
		held = append(held, o.factors)
	}
	return held
}

// outputs adds the outputs, concatenated over the levels.
func (h yoloHead) outputs(g *graph.Graph, prefix string, levels []int) (o outputs) {
	defer g.Module("detect")()
	const bins = 4 * 16
	first := g.Shape(levels[0])[0]
	wide, class := max(16, first/4, bins), max(first, min(h.classes, 100))
	o.boxes = everyLevel(g, prefix+"cv2", levels, bins, func(name string, x int) int { return twoUnits(g, name, x, wide) })
	o.scores = everyLevel(g, prefix+"cv3", levels, h.classes, func(name string, x int) int {
		if !h.light {
			return twoUnits(g, name, x, class)
		}
		for k := range 2 {
			c := g.Shape(x)[0]
			x = unit(g, fmt.Sprintf("%s.%d.0", name, k), x, c, 3, 1, c, true)
			x = unit(g, fmt.Sprintf("%s.%d.1", name, k), x, class, 1, 1, 1, true)
		}
		return x
	})
	if h.masks {
		o.factors = everyLevel(g, prefix+"cv4", levels, yoloMasks, func(name string, x int) int { return twoUnits(g, name, x, max(first/4, yoloMasks)) })
	}
	return o
}

// everyLevel computes a number of values for each anchor of each level with two units and
// a convolution.
func everyLevel(g *graph.Graph, name string, levels []int, numbers int64, units func(name string, x int) int) int {
	var all []int
	anchors := int64(0)
	for i, x := range levels {
		level := fmt.Sprintf("%s.%d", name, i)
		x = g.Conv(level+".2", units(level, x), graph.Window{Out: numbers, Bias: true})
		s := g.Shape(x)
		anchors += s[1] * s[2]
		all = append(all, g.View(level+".view", x, numbers, s[1]*s[2]))
	}
	return g.Op(models.Concat, name+".cat", []int64{numbers, anchors}, all...)
}

func twoUnits(g *graph.Graph, name string, x int, out int64) int {
	return unit(g, name+".1", unit(g, name+".0", x, out, 3, 1, 1, true), out, 3, 1, 1, true)
}

// sharedMasks adds the masks of an image (Proto), with a quarter of its sides.
func sharedMasks(g *graph.Graph, x int) int {
	defer g.Module("detect.proto")()
	width := g.Shape(x)[0]
	x = unit(g, "cv1", x, width, 3, 1, 1, true)
	x = unit(g, "cv2", doubled(g, "upsample", x, width), width, 3, 1, 1, true)
	return unit(g, "cv3", x, yoloMasks, 1, 1, 1, true)
}

// narrowTargets is the name of the targets in the scores' precision.
const narrowTargets = "target_scores.to"

// asUltralytics sets the package's training settings, with an average of the weights
// (EMA). Without autocast the targets have the scores' precision, so there is no copy.
func asUltralytics(c *models.Config) {
	c.Train.EMA = true
	onlyUnderAutocast(c, narrowTargets)
}

// onlyUnderAutocast replaces each layer whose name ends with name by a view of the layer
// before it, unless autocast changes the precision.
func onlyUnderAutocast(c *models.Config, name string) {
	for i := range c.Layers {
		if l := &c.Layers[i]; strings.HasSuffix(l.Name, name) && c.Train.Precision != models.AMP {
			l.Type, l.Inputs, l.Keeps = models.View, []int{i - 1}, nil
		}
	}
}

// yoloLoss compares boxes and scores with the targets of the anchors that belong to an
// object. The program holds the outputs, and the variables of a function until the
// function returns.
func yoloLoss(g *graph.Graph, name string, o outputs, single bool, held []int) int {
	defer g.Module(name)()
	b, s := g.Shape(o.boxes), g.Shape(o.scores)
	n := b[1]
	held = append(held, o.held()...)
	distances := g.CopyOf("pred_distri", o.boxes, n, b[0])
	classes := g.CopyOf("pred_scores", o.scores, n, s[0])
	// The distances are the means of their distributions.
	shares := g.Unary(models.Softmax, "softmax", distances)
	means := g.Keeping(g.Op(models.OtherLayer, "decode", []int64{n, 4}, shares), models.Keeps{})
	// Three tables of 32-bit numbers and two of bytes, anchors by objects. With a single
	// anchor per object, one more.
	tables := int64(7)
	if single {
		tables = 9
	}
	g.Keeping(g.Add(models.Layer{Name: "assign", Type: models.OtherLayer, Inputs: []int{graph.Second}, Out: []int64{yoloObjects * tables / 2, n}}), models.Keeps{})
	targets := g.Keeping(g.Op(models.OtherLayer, "target_scores", []int64{n, s[0]}, graph.Second), models.Keeps{})
	narrow := g.Keeping(g.Op(models.OtherLayer, narrowTargets, []int64{n, s[0]}, classes), models.Keeps{})
	bce := g.Keeping(g.Add(models.Layer{Name: "bce", Type: models.Loss, Inputs: []int{classes, narrow}, Out: []int64{n, s[0]}}), models.Keeps{Wide: []int{0, 1}})
	boxes := g.Keeping(g.Loss("boxes", means), models.Keeps{})
	g.Layers[boxes].Holds = append(held, distances, classes, targets, bce)
	return boxes
}

// maskLoss compares the masks of the anchors that belong to an object, one image after
// the other.
func maskLoss(g *graph.Graph, o outputs) int {
	defer g.Module("loss")()
	f, m := g.Shape(o.factors), g.Shape(o.masks)
	factors := g.CopyOf("pred_masks", o.factors, f[1], f[0])
	area := m[1] * m[2]
	own := min(yoloOwn, f[1])
	// Each mask and its target are kept, in 32 bits.
	each := g.Keeping(g.Op(models.OtherLayer, "single_mask_loss", []int64{own}, factors, o.masks, graph.Second), models.Keeps{Inputs: []int{0, 1}, Bytes: 2 * 4 * own * area})
	// The losses of one image's pixels.
	g.Keeping(g.Add(models.Layer{Name: "pixels", Type: models.OtherLayer, Inputs: []int{graph.Second}, Out: []int64{own, area}, Whole: true}), models.Keeps{})
	total := g.Keeping(g.Loss("masks", each), models.Keeps{})
	g.Layers[total].Holds = append(o.held(), o.masks)
	return total
}
