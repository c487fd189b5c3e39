package zoo

import (
	"fmt"

	"carma/configs/models"
)

// yolo9 is YOLOv9 (Wang et al. 2024) as the ultralytics package has it: the channels of
// the first two convolutions, of the four stages, of their outputs where these differ,
// and the repeats within a block.
type yolo9 struct {
	stem    [2]int64
	inner   [4]int64 // channels within a stage
	out     [4]int64 // channels of its output
	down    [2]int64 // channels of the convolutions that go down in the neck, multiples of 8
	neck    [3]int64 // channels at a third, a quarter and a fifth of the levels
	repeats int64
	first   bool // the first stage is of plain convolutions (ELAN1)
	masks   bool
	halved  bool // going down is by a convolution and a pool, each of half of the channels (ADown)
}

var yolo9s = map[string]yolo9{
	"t": {stem: [2]int64{16, 32}, inner: [4]int64{32, 64, 96, 128}, out: [4]int64{32, 64, 96, 128}, down: [2]int64{48, 64}, neck: [3]int64{64, 96, 128}, repeats: 3, first: true},
	"s": {stem: [2]int64{32, 64}, inner: [4]int64{64, 128, 192, 256}, out: [4]int64{64, 128, 192, 256}, down: [2]int64{96, 128}, neck: [3]int64{128, 192, 256}, repeats: 3, first: true},
	"m": {stem: [2]int64{32, 64}, inner: [4]int64{128, 240, 360, 480}, out: [4]int64{128, 240, 360, 480}, down: [2]int64{184, 240}, neck: [3]int64{240, 360, 480}, repeats: 1},
	"c": {stem: [2]int64{64, 128}, inner: [4]int64{128, 256, 512, 512}, out: [4]int64{256, 512, 512, 512}, down: [2]int64{256, 512}, neck: [3]int64{256, 512, 512}, repeats: 1, halved: true},
}

func (y yolo9) build(g *graph, s settings) {
	s = g.square(s)
	x := g.unit("model.1", g.unit("model.0", data, y.stem[0], 3, 2, 1, true), y.stem[1], 3, 2, 1, true)
	var levels [4]int
	for i := range levels {
		if i > 0 {
			to := y.out[i]
			if y.halved {
				to = y.out[i-1]
				if i == 3 {
					to = y.out[i]
				}
			}
			x = y.shrink(g, fmt.Sprintf("model.%d", 2*i+1), x, to)
		}
		x = y.stage(g, fmt.Sprintf("model.%d", 2*i+2), x, y.inner[i], y.out[i], y.first && i == 0)
		levels[i] = x
	}
	last := g.poolPyramid("model.9", x, y.out[3])
	p4 := y.stage(g, "up4", g.concat("cat4", g.upsample("upsample4", last), levels[2]), y.neck[1], y.neck[1], false)
	p3 := y.stage(g, "up3", g.concat("cat3", g.upsample("upsample3", p4), levels[1]), y.neck[0], y.neck[0], false)
	p4 = y.stage(g, "out4", g.concat("cat4b", y.shrink(g, "down4", p3, y.down[0]), p4), y.neck[1], y.neck[1], false)
	p5 := y.stage(g, "out5", g.concat("cat5b", y.shrink(g, "down5", p4, y.down[1]), last), y.neck[2], y.neck[2], false)
	yoloHead{classes: s.classes, masks: y.masks}.train(g, []int{p3, p4, p5})
}

// shrink halves the image (AConv, ADown).
func (y yolo9) shrink(g *graph, name string, in int, out int64) int {
	defer g.module(name)()
	x := g.avgPool("avg_pool", in, window{kernel: 2})
	if !y.halved {
		return g.unit("cv1", x, out, 3, 2, 1, true)
	}
	s := g.shape(x)
	a := g.unit("cv1", g.view("chunk.0", x, s[0]/2, s[1], s[2]), out/2, 3, 2, 1, true)
	b := g.maxPool("max_pool", g.view("chunk.1", x, s[0]/2, s[1], s[2]), window{kernel: 3, stride: 2, pad: 1})
	return g.concat("cat", a, g.unit("cv2", b, out/2, 1, 1, 1, true))
}

// stage is RepNCSPELAN4, or ELAN1 of plain convolutions.
func (y yolo9) stage(g *graph, name string, in int, inner, out int64, plain bool) int {
	defer g.module(name)()
	x := g.unit("cv1", in, inner, 1, 1, 1, true)
	s := g.shape(x)
	parts := []int{g.view("chunk.0", x, inner/2, s[1], s[2]), g.view("chunk.1", x, inner/2, s[1], s[2])}
	for i := range 2 {
		name, x := fmt.Sprintf("cv%d", i+2), parts[len(parts)-1]
		if !plain {
			x = g.repBlock(name+".0", x, inner/2, y.repeats)
		}
		parts = append(parts, g.unit(name+".1", x, inner/2, 3, 1, 1, true))
	}
	return g.unit("cv4", g.concat("cat", parts...), out, 1, 1, 1, true)
}

// repBlock is RepCSP: bottlenecks whose first convolution has two branches (RepConv).
func (g *graph) repBlock(name string, in int, out, n int64) int {
	defer g.module(name)()
	c := out / 2
	x := g.unit("cv1", in, c, 1, 1, 1, true)
	for i := range n {
		leave := g.module(fmt.Sprintf("m.%d", i))
		y := g.plus("cv1.add", g.unit("cv1.conv1", x, c, 3, 1, 1, false), g.unit("cv1.conv2", x, c, 1, 1, 1, false))
		y = g.inPlace(models.SiLU, "cv1.act", g.copyOf("cv1.identity", y, g.shape(y)...)) // zero is added
		x = g.plus("add", x, g.unit("cv2", y, c, 3, 1, 1, true))
		leave()
	}
	return g.unit("cv3", g.concat("cat", x, g.unit("cv2", in, c, 1, 1, 1, true)), out, 1, 1, 1, true)
}

// poolPyramid is SPPELAN.
func (g *graph) poolPyramid(name string, in int, out int64) int {
	defer g.module(name)()
	parts := []int{g.unit("cv1", in, out/2, 1, 1, 1, true)}
	for i := range 3 {
		parts = append(parts, g.maxPool(fmt.Sprintf("cv%d", i+2), parts[i], window{kernel: 5, pad: 2}))
	}
	return g.unit("cv5", g.concat("cat", parts...), out, 1, 1, 1, true)
}
