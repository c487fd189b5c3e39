package detection

import (
	"fmt"

	"carma/configs/models"
	"carma/estimator/networks/graph"
)

// yolo10 is YOLOv10 (Wang et al. 2024, arXiv 2405.14458) as the ultralytics package has
// it: YOLOv8 whose later stages are of convolutions of single channels, with a head that
// learns one anchor for each object beside the usual one.
type yolo10 struct {
	yolo
	// Stages of compact blocks: the third and fourth of the backbone, those of the middle
	// level on the way up and down the neck. The last of the neck always is.
	back    [2]bool
	up, out bool
	large   bool // kernels of 7 in the compact blocks of the last level
}

var yolo10s = map[string]yolo10{
	"n": {yolo: yolo{depth: 0.33, width: 0.25, most: 1024}, large: true},
	"s": {yolo: yolo{depth: 0.33, width: 0.5, most: 1024}, back: [2]bool{false, true}, large: true},
	"m": {yolo: yolo{depth: 0.67, width: 0.75, most: 768}, back: [2]bool{false, true}, out: true},
	"b": {yolo: yolo{depth: 0.67, width: 1, most: 512}, back: [2]bool{false, true}, up: true, out: true},
	"l": {yolo: yolo{depth: 1, width: 1, most: 512}, back: [2]bool{false, true}, up: true, out: true},
	"x": {yolo: yolo{depth: 1, width: 1.25, most: 512}, back: [2]bool{true, true}, up: true, out: true},
}

func (y yolo10) build(g *graph.Graph, s graph.Sizes) {
	s = square(g, s)
	x := unit(g, "model.0", graph.Data, y.channels(64), 3, 2, 1, true)
	x = unit(g, "model.1", x, y.channels(128), 3, 2, 1, true)
	levels := [4]int{}
	for i, out := range []int64{128, 256, 512, 1024} {
		name, n := fmt.Sprintf("model.%d", 2*i+2), y.repeats([]int64{3, 6, 6, 3}[i])
		switch {
		case i == 1:
			x = unit(g, "model.3", x, y.channels(out), 3, 2, 1, true)
		case i > 1:
			x = apart(g, fmt.Sprintf("model.%d", 2*i+1), x, y.channels(out))
		}
		if i > 1 && y.back[i-2] {
			x = compactBlock(g, name, x, y.channels(out), n, i == 3 && y.large)
		} else {
			x = splitBlock(g, name, x, y.channels(out), n, true)
		}
		levels[i] = x
	}
	last := splitAttention(g, "model.10", fastPool(g, "model.9", x, y.channels(1024)), 1)
	p4 := y.neck(g, "up4", g.Concat("cat4", g.Upsample("upsample4", last), levels[2]), 512, y.up, false)
	p3 := y.neck(g, "up3", g.Concat("cat3", g.Upsample("upsample3", p4), levels[1]), 256, false, false)
	x = g.Concat("cat4b", unit(g, "down4", p3, y.channels(256), 3, 2, 1, true), p4)
	p4 = y.neck(g, "out4", x, 512, y.out, false)
	x = g.Concat("cat5b", apart(g, "down5", p4, y.channels(512)), last)
	p5 := y.neck(g, "out5", x, 1024, true, y.large)
	yoloHead{classes: s.Classes, light: true, twice: true}.train(g, []int{p3, p4, p5})
}

func (y yolo10) neck(g *graph.Graph, name string, in int, out int64, compact, large bool) int {
	if compact {
		return compactBlock(g, name, in, y.channels(out), y.repeats(3), large)
	}
	return splitBlock(g, name, in, y.channels(out), y.repeats(3), false)
}

// apart halves the image by a convolution of single channels (SCDown).
func apart(g *graph.Graph, name string, in int, out int64) int {
	return unit(g, name+".cv2", unit(g, name+".cv1", in, out, 1, 1, 1, true), out, 3, 2, out, false)
}

// compactBlock is C2fCIB: C2f of blocks of single channels and of single pixels.
func compactBlock(g *graph.Graph, name string, in int, out, n int64, large bool) int {
	defer g.Module(name)()
	c := out / 2
	return split(g, in, out, c, n, func(i int64, x int) int {
		defer g.Module(fmt.Sprintf("m.%d", i))()
		y := unit(g, "cv1.1", unit(g, "cv1.0", x, c, 3, 1, c, true), 2*c, 1, 1, 1, true)
		if large {
			sum := g.Plus("cv1.2.add", unit(g, "cv1.2.conv", y, 2*c, 7, 1, 2*c, false), unit(g, "cv1.2.conv1", y, 2*c, 3, 1, 2*c, false))
			y = g.InPlace(models.SiLU, "cv1.2.act", sum)
		} else {
			y = unit(g, "cv1.2", y, 2*c, 3, 1, 2*c, true)
		}
		y = unit(g, "cv1.4", unit(g, "cv1.3", y, c, 1, 1, 1, true), c, 3, 1, c, true)
		return g.Plus("add", x, y)
	})
}
