package zoo

import (
	"fmt"
	"math"

	"carma/configs/models"
)

// yolo is a network of the ultralytics package: the multiples of depth and
// width of a size, and the most channels of a stage.
type yolo struct {
	version      int // 8 or 11
	depth, width float64
	most         int64
	masks        bool
}

// yolos are YOLOv8, YOLOv9, YOLOv10 and YOLO11 (Jocher et al. 2023 and 2024, Wang et al.
// 2024), as the package's configurations have them. With -seg they make masks too.
func yolos() group {
	c := group{name: "yolo", description: "detection in one pass, with masks (YOLO)"}
	add := func(name string, build func(*graph, settings)) *entry {
		c.entries = append(c.entries, entry{name: name, kind: models.Detection, batch: 16, size: settings{image: 640, classes: 80}, build: build, finish: asUltralytics})
		return &c.entries[len(c.entries)-1]
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
					e.aliases = []string{"yolov11" + size + masks}
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
		add("yolov10"+size, yolo10s[size].build)
	}
	return c
}

// channels are those of a stage at this size, a multiple of 8.
func (y yolo) channels(n int64) int64 {
	return int64(math.Ceil(float64(min(n, y.most))*y.width/8)) * 8
}

func (y yolo) repeats(n int64) int64 {
	return max(int64(math.Round(float64(n)*y.depth)), 1)
}

// unit is a convolution, a batch norm and SiLU in place.
func (g *graph) unit(name string, in int, out, kernel, stride, groups int64, act bool) int {
	x := g.convNorm(name+".conv", name+".bn", in, window{out: out, kernel: kernel, pad: kernel / 2, stride: stride, groups: groups})
	if act {
		x = g.inPlace(models.SiLU, name+".act", x)
	}
	return x
}

// square declares images, and boxes of 8 objects in each.
func (g *graph) square(s settings) settings {
	if s.image%32 != 0 {
		g.fail("the image has %d pixels, not a multiple of 32", s.image)
		s.image = 32
	}
	g.input(4, 3, s.image, s.image)
	g.input(4, 5, 8)
	return s
}

func (y yolo) build(g *graph, s settings) {
	s = g.square(s)
	x := g.unit("model.0", data, y.channels(64), 3, 2, 1, true)
	x = g.unit("model.1", x, y.channels(128), 3, 2, 1, true)
	var levels [6]int
	for i, out := range []int64{128, 256, 512, 1024} {
		if i > 0 {
			x = g.unit(fmt.Sprintf("model.%d", 2*i+1), x, y.channels(out), 3, 2, 1, true)
		}
		x = y.back(g, fmt.Sprintf("model.%d", 2*i+2), x, i)
		levels[i+2] = x
	}
	x = g.fastPool("model.9", x, y.channels(1024))
	if y.version == 11 {
		x = g.splitAttention("model.10", x, y.repeats(2))
	}
	last := x
	p4 := y.neck(g, "up4", g.concat("cat4", g.upsample("upsample4", x), levels[4]), 512, false)
	p3 := y.neck(g, "up3", g.concat("cat3", g.upsample("upsample3", p4), levels[3]), 256, false)
	x = g.concat("cat4b", g.unit("down4", p3, y.channels(256), 3, 2, 1, true), p4)
	p4 = y.neck(g, "out4", x, 512, false)
	x = g.concat("cat5b", g.unit("down5", p4, y.channels(512), 3, 2, 1, true), last)
	p5 := y.neck(g, "out5", x, 1024, true)
	yoloHead{classes: s.classes, light: y.version > 8, masks: y.masks}.train(g, []int{p3, p4, p5})
}

// back is stage i of the backbone.
func (y yolo) back(g *graph, name string, in, i int) int {
	if y.version == 8 {
		return g.splitBlock(name, in, y.channels([]int64{128, 256, 512, 1024}[i]), y.repeats([]int64{3, 6, 6, 3}[i]), true)
	}
	out := y.channels([]int64{256, 512, 512, 1024}[i])
	quarter := i < 2
	return g.crossBlock(name, in, out, y.repeats(2), i >= 2 || y.large(), quarter)
}

// large sizes of YOLO11 have the deeper blocks everywhere.
func (y yolo) large() bool { return y.width >= 1 }

// neck is a stage behind the backbone.
func (y yolo) neck(g *graph, name string, in int, out int64, deep bool) int {
	if y.version == 8 {
		return g.splitBlock(name, in, y.channels(out), y.repeats(3), false)
	}
	return g.crossBlock(name, in, y.channels(out), y.repeats(2), deep || y.large(), false)
}

// splitBlock is C2f: n bottlenecks one after the other, all of whose outputs are
// joined.
func (g *graph) splitBlock(name string, in int, out, n int64, add bool) int {
	defer g.module(name)()
	return g.split(in, out, out/2, n, func(i int64, x int) int {
		return g.narrow(fmt.Sprintf("m.%d", i), x, out/2, out/2, add)
	})
}

// crossBlock is C3k2, with bottlenecks or with pairs of them (C3k).
func (g *graph) crossBlock(name string, in int, out, n int64, deep, quarter bool) int {
	defer g.module(name)()
	c := out / 2
	if quarter {
		c = out / 4
	}
	return g.split(in, out, c, n, func(i int64, x int) int {
		name := fmt.Sprintf("m.%d", i)
		if !deep {
			return g.narrow(name, x, c, c/2, true)
		}
		defer g.module(name)()
		a := g.unit("cv1", x, c/2, 1, 1, 1, true)
		b := g.unit("cv2", x, c/2, 1, 1, 1, true)
		for k := range 2 {
			a = g.narrow(fmt.Sprintf("m.%d", k), a, c/2, c/2, true)
		}
		return g.unit("cv3", g.concat("cat", a, b), c, 1, 1, 1, true)
	})
}

func (g *graph) split(in int, out, c, n int64, block func(i int64, x int) int) int {
	x := g.unit("cv1", in, 2*c, 1, 1, 1, true)
	s := g.shape(x)
	parts := []int{g.view("chunk.0", x, c, s[1], s[2]), g.view("chunk.1", x, c, s[1], s[2])}
	for i := range n {
		parts = append(parts, block(i, parts[len(parts)-1]))
	}
	return g.unit("cv2", g.concat("cat", parts...), out, 1, 1, 1, true)
}

// narrow is a bottleneck of two 3 x 3 convolutions.
func (g *graph) narrow(name string, in int, out, inner int64, add bool) int {
	defer g.module(name)()
	x := g.unit("cv2", g.unit("cv1", in, inner, 3, 1, 1, true), out, 3, 1, 1, true)
	if add {
		return g.plus("add", in, x)
	}
	return x
}

// fastPool is SPPF.
func (g *graph) fastPool(name string, in int, out int64) int {
	defer g.module(name)()
	parts := []int{g.unit("cv1", in, g.shape(in)[0]/2, 1, 1, 1, false)}
	for i := range 3 {
		parts = append(parts, g.maxPool(fmt.Sprintf("m.%d", i), parts[i], window{kernel: 5, pad: 2}))
	}
	return g.unit("cv2", g.concat("cat", parts...), out, 1, 1, 1, true)
}

// splitAttention is C2PSA: half of the channels go through n blocks of attention.
func (g *graph) splitAttention(name string, in int, n int64) int {
	defer g.module(name)()
	c := g.shape(in)[0] / 2
	x := g.unit("cv1", in, 2*c, 1, 1, 1, true)
	s := g.shape(x)
	a, b := g.view("a", x, c, s[1], s[2]), g.view("b", x, c, s[1], s[2])
	for i := range n {
		leave := g.module(fmt.Sprintf("m.%d", i))
		b = g.plus("add1", b, g.pixelAttention("attn", b))
		b = g.plus("add2", b, g.unit("ffn.1", g.unit("ffn.0", b, 2*c, 1, 1, 1, true), c, 1, 1, 1, false))
		leave()
	}
	return g.unit("cv2", g.concat("cat", a, b), 2*c, 1, 1, 1, true)
}

// pixelAttention is attention between all pixels, in single operations. Keys are half
// as wide as values.
func (g *graph) pixelAttention(name string, in int) int {
	defer g.module(name)()
	s := g.shape(in)
	c, n := s[0], s[1]*s[2]
	heads := max(c/64, 1)
	qkv := g.unit("qkv", in, 2*c, 1, 1, 1, false)
	q := g.scale("scale", g.view("q", qkv, c/2, n))
	k, v := g.view("k", qkv, c/2, n), g.view("v", qkv, c, n)
	scores := g.unary(models.Softmax, "softmax", g.op(models.MatMul, "scores", []int64{heads, n, n}, g.copyOf("q.ordered", q, c/2, n), g.copyOf("k.ordered", k, c/2, n)))
	x := g.view("image", g.op(models.MatMul, "values", []int64{c, n}, g.copyOf("v.ordered", v, c, n), scores), c, s[1], s[2])
	pe := g.unit("pe", g.copyOf("v.image", v, c, s[1], s[2]), c, 3, 1, c, false)
	return g.unit("proj", g.plus("add", x, pe), c, 1, 1, 1, false)
}
