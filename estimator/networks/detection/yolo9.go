package detection

import (
	"fmt"

	"carma/configs/models"
	"carma/estimator/networks/graph"
)

// yolo9 is YOLOv9 (Wang et al. 2024) as in the ultralytics package: the channels of the
// first two convolutions, of the four stages, of their outputs if different, and the
// repeats within a block.
type yolo9 struct {
	stem    [2]int64
	inner   [4]int64 // channels within a stage
	out     [4]int64 // channels of its output
	down    [2]int64 // channels of the neck's downsampling convolutions, multiples of 8
	neck    [3]int64 // channels at a third, a quarter and a fifth of the levels
	repeats int64
	first   bool // the first stage has plain convolutions (ELAN1)
	masks   bool
	halved  bool // downsampling uses a convolution and a pool, each for half of the channels (ADown)
}

var yolo9s = map[string]yolo9{
	"t": {stem: [2]int64{16, 32}, inner: [4]int64{32, 64, 96, 128}, out: [4]int64{32, 64, 96, 128}, down: [2]int64{48, 64}, neck: [3]int64{64, 96, 128}, repeats: 3, first: true},
	"s": {stem: [2]int64{32, 64}, inner: [4]int64{64, 128, 192, 256}, out: [4]int64{64, 128, 192, 256}, down: [2]int64{96, 128}, neck: [3]int64{128, 192, 256}, repeats: 3, first: true},
	"m": {stem: [2]int64{32, 64}, inner: [4]int64{128, 240, 360, 480}, out: [4]int64{128, 240, 360, 480}, down: [2]int64{184, 240}, neck: [3]int64{240, 360, 480}, repeats: 1},
	"c": {stem: [2]int64{64, 128}, inner: [4]int64{128, 256, 512, 512}, out: [4]int64{256, 512, 512, 512}, down: [2]int64{256, 512}, neck: [3]int64{256, 512, 512}, repeats: 1, halved: true},
}

func (y yolo9) build(g *graph.Graph, s graph.Sizes) {
	s = square(g, s)
	x := unit(g, "model.1", unit(g, "model.0", graph.Data, y.stem[0], 3, 2, 1, true), y.stem[1], 3, 2, 1, true)
	var levels [4]int
	for i := range levels {
		if i > 0 {
			to := y.out[i]
			if y.halved && i < 3 {
				to = y.out[i-1]
			}
			x = y.shrink(g, fmt.Sprintf("model.%d", 2*i+1), x, to)
		}
		x = y.stage(g, fmt.Sprintf("model.%d", 2*i+2), x, y.inner[i], y.out[i], y.first && i == 0)
		levels[i] = x
	}
	outs := neck(g, poolPyramid(g, "model.9", x, y.out[3]), levels, func(name string, in int) int {
		out := y.neck[map[string]int{"up4": 1, "up3": 0, "out4": 1, "out5": 2}[name]]
		return y.stage(g, name, in, out, out, false)
	}, func(name string, in int) int {
		return y.shrink(g, name, in, y.down[map[string]int{"down4": 0, "down5": 1}[name]])
	})
	yoloHead{classes: s.Classes, masks: y.masks}.train(g, outs)
}

// shrink halves the image (AConv, ADown).
func (y yolo9) shrink(g *graph.Graph, name string, in int, out int64) int {
	defer g.Module(name)()
	x := g.AvgPool("avg_pool", in, graph.Window{Kernel: 2})
	if !y.halved {
		return unit(g, "cv1", x, out, 3, 2, 1, true)
	}
	s := g.Shape(x)
	a := unit(g, "cv1", g.View("chunk.0", x, s[0]/2, s[1], s[2]), out/2, 3, 2, 1, true)
	b := g.MaxPool("max_pool", g.View("chunk.1", x, s[0]/2, s[1], s[2]), graph.Window{Kernel: 3, Stride: 2, Pad: 1})
	return g.Concat("cat", a, unit(g, "cv2", b, out/2, 1, 1, 1, true))
}

// stage adds a RepNCSPELAN4, or an ELAN1 of plain convolutions.
func (y yolo9) stage(g *graph.Graph, name string, in int, inner, out int64, plain bool) int {
	defer g.Module(name)()
	x := unit(g, "cv1", in, inner, 1, 1, 1, true)
	s := g.Shape(x)
	parts := []int{g.View("chunk.0", x, inner/2, s[1], s[2]), g.View("chunk.1", x, inner/2, s[1], s[2])}
	for i := range 2 {
		name, x := fmt.Sprintf("cv%d", i+2), parts[len(parts)-1]
		if !plain {
			x = repBlock(g, name+".0", x, inner/2, y.repeats)
		}
		parts = append(parts, unit(g, name+".1", x, inner/2, 3, 1, 1, true))
	}
	return unit(g, "cv4", g.Concat("cat", parts...), out, 1, 1, 1, true)
}

// repBlock adds a RepCSP: bottlenecks whose first convolution has two branches (RepConv).
func repBlock(g *graph.Graph, name string, in int, out, n int64) int {
	defer g.Module(name)()
	c := out / 2
	x := unit(g, "cv1", in, c, 1, 1, 1, true)
	for i := range n {
		leave := g.Module(fmt.Sprintf("m.%d", i))
		y := g.Plus("cv1.add", unit(g, "cv1.conv1", x, c, 3, 1, 1, false), unit(g, "cv1.conv2", x, c, 1, 1, 1, false))
		y = g.InPlace(models.SiLU, "cv1.act", g.CopyOf("cv1.identity", y, g.Shape(y)...)) // the sum with zero
		x = g.Plus("add", x, unit(g, "cv2", y, c, 3, 1, 1, true))
		leave()
	}
	return unit(g, "cv3", g.Concat("cat", x, unit(g, "cv2", in, c, 1, 1, 1, true)), out, 1, 1, 1, true)
}

// poolPyramid adds an SPPELAN.
func poolPyramid(g *graph.Graph, name string, in int, out int64) int {
	defer g.Module(name)()
	parts := []int{unit(g, "cv1", in, out/2, 1, 1, 1, true)}
	for i := range 3 {
		parts = append(parts, g.MaxPool(fmt.Sprintf("cv%d", i+2), parts[i], graph.Window{Kernel: 5, Pad: 2}))
	}
	return unit(g, "cv5", g.Concat("cat", parts...), out, 1, 1, 1, true)
}
