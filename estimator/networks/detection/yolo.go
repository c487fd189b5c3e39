package detection

import (
	"fmt"
	"math"
	"slices"

	"carma/configs/models"
	"carma/estimator/networks/graph"
)

// yolo is a network of the ultralytics package: the depth and width multiples of a size,
// and the largest number of channels of a stage.
type yolo struct {
	version      int // 8, 10 or 11
	depth, width float64
	most         int64
	masks        bool
	// compact lists the stages of compact blocks. large is set if these have kernels of 7 in
	// the last level (YOLOv10).
	compact []string
	large   bool
}

// YOLOs returns YOLOv8, YOLOv9, YOLOv10 and YOLO11 (Jocher et al. 2023 and 2024, Wang et
// al. 2024), with the package's configurations. With -seg they also make masks.
func YOLOs() graph.Group {
	c := graph.Group{Name: "yolo", Description: "detection in one pass, with masks (YOLO)"}
	add := func(name string, build func(*graph.Graph, graph.Sizes)) *graph.Network {
		c.Entries = append(c.Entries, graph.Network{Name: name, Kind: models.Detection, Batch: 16, Size: graph.Sizes{Image: 640, Classes: 80}, Build: build, Finish: asUltralytics})
		return &c.Entries[len(c.Entries)-1]
	}
	for _, v := range []struct {
		prefix  string
		version int
		sizes   map[string]yolo
	}{
		{"yolov8", 8, map[string]yolo{"n": {depth: 0.33, width: 0.25, most: 1024}, "s": {depth: 0.33, width: 0.5, most: 1024}, "m": {depth: 0.67, width: 0.75, most: 768}, "l": {depth: 1, width: 1, most: 512}, "x": {depth: 1, width: 1.25, most: 512}}},
		{"yolo11", 11, map[string]yolo{"n": {depth: 0.5, width: 0.25, most: 1024}, "s": {depth: 0.5, width: 0.5, most: 1024}, "m": {depth: 0.5, width: 1, most: 512}, "l": {depth: 1, width: 1, most: 512}, "x": {depth: 1, width: 1.5, most: 512}}},
	} {
		for _, masks := range []string{"", "-seg"} {
			for _, size := range []string{"n", "s", "m", "l", "x"} {
				y := v.sizes[size]
				y.version, y.masks = v.version, masks != ""
				e := add(v.prefix+size+masks, y.build)
				if v.version == 11 {
					e.Aliases = []string{"yolov11" + size + masks}
				}
			}
		}
	}
	for _, size := range []string{"t", "s", "m", "c"} {
		add("yolov9"+size, yolo9s[size].build)
	}
	masked := yolo9s["c"]
	masked.masks = true
	add("yolov9c-seg", masked.build)
	add("yolov9e", yolo9e{}.build)
	add("yolov9e-seg", yolo9e{masks: true}.build)
	for _, size := range []string{"n", "s", "m", "b", "l", "x"} {
		y := yolo10s[size]
		y.version = 10
		add("yolov10"+size, y.build)
	}
	return c
}

// channels returns the number of channels of a stage at this size, a multiple of 8.
func (y yolo) channels(n int64) int64 {
	return int64(math.Ceil(float64(min(n, y.most))*y.width/8)) * 8
}

func (y yolo) repeats(n int64) int64 {
	return max(int64(math.Round(float64(n)*y.depth)), 1)
}

// unit adds a convolution, a batch norm and SiLU in place.
func unit(g *graph.Graph, name string, in int, out, kernel, stride, groups int64, act bool) int {
	x := g.ConvNorm(name+".conv", name+".bn", in, graph.Window{Out: out, Kernel: kernel, Pad: kernel / 2, Stride: stride, Groups: groups})
	if act {
		x = g.InPlace(models.SiLU, name+".act", x)
	}
	return x
}

// square declares images, and boxes of 8 objects per image.
func square(g *graph.Graph, s graph.Sizes) graph.Sizes {
	if s.Image%32 != 0 {
		g.Fail("the image has %d pixels, not a multiple of 32", s.Image)
		s.Image = 32
	}
	g.Input(4, 3, s.Image, s.Image)
	g.Input(4, 5, 8)
	return s
}

func (y yolo) build(g *graph.Graph, s graph.Sizes) {
	s = square(g, s)
	x := unit(g, "model.0", graph.Data, y.channels(64), 3, 2, 1, true)
	x = unit(g, "model.1", x, y.channels(128), 3, 2, 1, true)
	var levels [4]int
	for i, out := range []int64{128, 256, 512, 1024} {
		if name := fmt.Sprintf("model.%d", 2*i+1); i > 0 {
			x = y.shrink(g, name, x, y.channels(out), i > 1)
		}
		x = y.back(g, fmt.Sprintf("model.%d", 2*i+2), x, i)
		levels[i] = x
	}
	x = fastPool(g, "model.9", x, y.channels(1024))
	switch y.version {
	case 10:
		x = splitAttention(g, "model.10", x, 1)
	case 11:
		x = splitAttention(g, "model.10", x, y.repeats(2))
	}
	outs := neck(g, x, levels, func(name string, in int) int {
		return y.stage(g, name, in, map[string]int64{"up4": 512, "up3": 256, "out4": 512, "out5": 1024}[name])
	}, func(name string, in int) int {
		return y.shrink(g, name, in, y.channels(map[string]int64{"down4": 256, "down5": 512}[name]), name == "down5")
	})
	yoloHead{classes: s.Classes, light: y.version > 8, masks: y.masks, twice: y.version == 10}.train(g, outs)
}

// neck joins the features of three levels on the way up to the finest and down again.
// last is the index of the coarsest features, levels of the backbone's features.
func neck(g *graph.Graph, last int, levels [4]int, stage, shrink func(name string, in int) int) []int {
	p4 := stage("up4", g.Concat("cat4", g.Upsample("upsample4", last), levels[2]))
	p3 := stage("up3", g.Concat("cat3", g.Upsample("upsample3", p4), levels[1]))
	p4 = stage("out4", g.Concat("cat4b", shrink("down4", p3), p4))
	return []int{p3, p4, stage("out5", g.Concat("cat5b", shrink("down5", p4), last))}
}

// shrink halves the image. late selects a depthwise convolution in YOLOv10.
func (y yolo) shrink(g *graph.Graph, name string, in int, out int64, late bool) int {
	if y.version == 10 && late {
		return apart(g, name, in, out)
	}
	return unit(g, name, in, out, 3, 2, 1, true)
}

// back adds stage i of the backbone.
func (y yolo) back(g *graph.Graph, name string, in, i int) int {
	if y.version == 11 {
		out := y.channels([]int64{256, 512, 512, 1024}[i])
		return crossBlock(g, name, in, out, y.repeats(2), i >= 2 || y.wide(), i < 2)
	}
	out, n := y.channels([]int64{128, 256, 512, 1024}[i]), y.repeats([]int64{3, 6, 6, 3}[i])
	if slices.Contains(y.compact, name) {
		return compactBlock(g, name, in, out, n, i == 3 && y.large)
	}
	return splitBlock(g, name, in, out, n, true)
}

// wide reports whether a size of YOLO11 has the deeper blocks everywhere.
func (y yolo) wide() bool { return y.width >= 1 }

// stage adds a stage after the backbone.
func (y yolo) stage(g *graph.Graph, name string, in int, out int64) int {
	switch out = y.channels(out); {
	case y.version == 11:
		return crossBlock(g, name, in, out, y.repeats(2), name == "out5" || y.wide(), false)
	case slices.Contains(y.compact, name):
		return compactBlock(g, name, in, out, y.repeats(3), name == "out5" && y.large)
	}
	return splitBlock(g, name, in, out, y.repeats(3), false)
}

// splitBlock adds a C2f: n bottlenecks in sequence, whose outputs are all concatenated.
func splitBlock(g *graph.Graph, name string, in int, out, n int64, add bool) int {
	defer g.Module(name)()
	return split(g, in, out, out/2, n, func(i int64, x int) int {
		return narrow(g, fmt.Sprintf("m.%d", i), x, out/2, out/2, add)
	})
}

// crossBlock adds a C3k2, with bottlenecks or with pairs of them (C3k).
func crossBlock(g *graph.Graph, name string, in int, out, n int64, deep, quarter bool) int {
	defer g.Module(name)()
	c := out / 2
	if quarter {
		c = out / 4
	}
	return split(g, in, out, c, n, func(i int64, x int) int {
		name := fmt.Sprintf("m.%d", i)
		if !deep {
			return narrow(g, name, x, c, c/2, true)
		}
		defer g.Module(name)()
		a := unit(g, "cv1", x, c/2, 1, 1, 1, true)
		b := unit(g, "cv2", x, c/2, 1, 1, 1, true)
		for k := range 2 {
			a = narrow(g, fmt.Sprintf("m.%d", k), a, c/2, c/2, true)
		}
		return unit(g, "cv3", g.Concat("cat", a, b), c, 1, 1, 1, true)
	})
}

func split(g *graph.Graph, in int, out, c, n int64, block func(i int64, x int) int) int {
	x := unit(g, "cv1", in, 2*c, 1, 1, 1, true)
	s := g.Shape(x)
	parts := []int{g.View("chunk.0", x, c, s[1], s[2]), g.View("chunk.1", x, c, s[1], s[2])}
	for i := range n {
		parts = append(parts, block(i, parts[len(parts)-1]))
	}
	return unit(g, "cv2", g.Concat("cat", parts...), out, 1, 1, 1, true)
}

// narrow adds a bottleneck of two 3 x 3 convolutions.
func narrow(g *graph.Graph, name string, in int, out, inner int64, add bool) int {
	defer g.Module(name)()
	x := unit(g, "cv2", unit(g, "cv1", in, inner, 3, 1, 1, true), out, 3, 1, 1, true)
	if add {
		return g.Plus("add", in, x)
	}
	return x
}

// fastPool adds an SPPF.
func fastPool(g *graph.Graph, name string, in int, out int64) int {
	defer g.Module(name)()
	parts := []int{unit(g, "cv1", in, g.Shape(in)[0]/2, 1, 1, 1, false)}
	for i := range 3 {
		parts = append(parts, g.MaxPool(fmt.Sprintf("m.%d", i), parts[i], graph.Window{Kernel: 5, Pad: 2}))
	}
	return unit(g, "cv2", g.Concat("cat", parts...), out, 1, 1, 1, true)
}

// splitAttention adds a C2PSA: half of the channels go through n blocks of attention.
func splitAttention(g *graph.Graph, name string, in int, n int64) int {
	defer g.Module(name)()
	c := g.Shape(in)[0] / 2
	x := unit(g, "cv1", in, 2*c, 1, 1, 1, true)
	s := g.Shape(x)
	a, b := g.View("a", x, c, s[1], s[2]), g.View("b", x, c, s[1], s[2])
	for i := range n {
		leave := g.Module(fmt.Sprintf("m.%d", i))
		b = g.Plus("add1", b, pixelAttention(g, "attn", b))
		b = g.Plus("add2", b, unit(g, "ffn.1", unit(g, "ffn.0", b, 2*c, 1, 1, 1, true), c, 1, 1, 1, false))
		leave()
	}
	return unit(g, "cv2", g.Concat("cat", a, b), 2*c, 1, 1, 1, true)
}

// pixelAttention adds attention between all pixels, in single operations. Keys are half
// as wide as values.
func pixelAttention(g *graph.Graph, name string, in int) int {
	defer g.Module(name)()
	s := g.Shape(in)
	c, n := s[0], s[1]*s[2]
	heads := max(c/64, 1)
	qkv := unit(g, "qkv", in, 2*c, 1, 1, 1, false)
	q := g.Scale("scale", g.View("q", qkv, c/2, n))
	k, v := g.View("k", qkv, c/2, n), g.View("v", qkv, c, n)
	scores := g.Unary(models.Softmax, "softmax", g.Op(models.MatMul, "scores", []int64{heads, n, n}, g.CopyOf("q.ordered", q, c/2, n), g.CopyOf("k.ordered", k, c/2, n)))
	x := g.View("image", g.Op(models.MatMul, "values", []int64{c, n}, g.CopyOf("v.ordered", v, c, n), scores), c, s[1], s[2])
	pe := unit(g, "pe", g.CopyOf("v.image", v, c, s[1], s[2]), c, 3, 1, c, false)
	return unit(g, "proj", g.Plus("add", x, pe), c, 1, 1, 1, false)
}
