package detection

import (
	"fmt"

	"carma/configs/models"
	"carma/estimator/networks/graph"
)

// yolo9e is YOLOv9 e as in the ultralytics package: two backbones, the second of which
// takes the first one's features on all levels.
type yolo9e struct{ masks bool }

func (y yolo9e) build(g *graph.Graph, s graph.Sizes) {
	s = square(g, s)
	plan := yolo9{inner: [4]int64{128, 256, 512, 512}, out: [4]int64{256, 512, 1024, 1024}, repeats: 2, halved: true}
	wide := []int64{64, 128, 256, 512, 1024}
	first := [5]int{unit(g, "model.1", graph.Data, wide[0], 3, 2, 1, true)}
	x := unit(g, "model.2", first[0], wide[1], 3, 2, 1, true)
	for i := range 4 {
		if i > 0 {
			x = plan.shrink(g, fmt.Sprintf("model.%d", 2*i+2), x, plan.out[i-1])
		}
		x = plan.stage(g, fmt.Sprintf("model.%d", 2*i+3), x, plan.inner[i], plan.out[i], false)
		first[i+1] = x
	}
	// parts[i][j] is the first backbone's features of level i for the second's level j.
	var parts [5][]int
	var held []int
	for i, x := range first {
		all := g.Conv(fmt.Sprintf("model.%d.conv", i+10), x, graph.Window{Out: 1<<(i+7) - 64, Bias: true})
		held = append(held, all)
		shape := g.Shape(all)
		for j := range i + 1 {
			parts[i] = append(parts[i], g.View(fmt.Sprintf("model.%d.split.%d", i+10, j), all, wide[j], shape[1], shape[2]))
		}
	}
	fuse := func(level int, x int) int { return fuse(g, fmt.Sprintf("fuse.%d", level), level, parts[level:], x) }
	x = fuse(0, unit(g, "model.15", graph.Data, wide[0], 3, 2, 1, true))
	x = fuse(1, unit(g, "model.17", x, wide[1], 3, 2, 1, true))
	levels := [4]int{plan.stage(g, "model.19", x, plan.inner[0], plan.out[0], false)}
	for i := 1; i < 4; i++ {
		x = fuse(i+1, plan.shrink(g, fmt.Sprintf("model.%d", 3*i+17), levels[i-1], plan.out[i-1]))
		levels[i] = plan.stage(g, fmt.Sprintf("model.%d", 3*i+19), x, plan.inner[i], plan.out[i], false)
	}
	outs := neck(g, poolPyramid(g, "model.29", levels[3], 512), levels, func(name string, in int) int {
		inner := map[string]int64{"up4": 512, "up3": 256, "out4": 512, "out5": 1024}[name]
		return plan.stage(g, name, in, inner, min(inner, 512), false)
	}, func(name string, in int) int {
		return plan.shrink(g, name, in, map[string]int64{"down4": 256, "down5": 512}[name])
	})
	g.Layers[outs[2]].Holds = held // the list of outputs references them until all are known
	yoloHead{classes: s.Classes, masks: y.masks}.train(g, outs)
}

// fuse adds to x the first backbone's parts for this level, upsampled to its size
// (CBFuse). Under autocast they have 32 bits.
func fuse(g *graph.Graph, name string, level int, parts [][]int, x int) int {
	defer g.Module(name)()
	s := g.Shape(x)
	var all []int
	for i := range parts {
		all = append(all, g.Op(models.Upsample, fmt.Sprintf("interpolate.%d", i), s, parts[i][level]))
	}
	stack := g.Op(models.Concat, "stack", []int64{int64(len(all) + 1), s[0], s[1], s[2]}, append(all, x)...)
	return g.Op(models.Mean, "sum", s, stack)
}
