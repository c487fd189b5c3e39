package detection

import (
	"fmt"

	"carma/configs/models"
	"carma/estimator/networks/graph"
)

// yolo10s lists the sizes of YOLOv10 (Wang et al. 2024, arXiv 2405.14458) as in the
// ultralytics package: a YOLOv8 whose later stages have depthwise convolutions, with a
// second head that learns one anchor for each object.
var yolo10s = map[string]yolo{
	"n": {depth: 0.33, width: 0.25, most: 1024, compact: []string{"out5"}, large: true},
	"s": {depth: 0.33, width: 0.5, most: 1024, compact: []string{"model.8", "out5"}, large: true},
	"m": {depth: 0.67, width: 0.75, most: 768, compact: []string{"model.8", "out4", "out5"}},
	"b": {depth: 0.67, width: 1, most: 512, compact: []string{"model.8", "up4", "out4", "out5"}},
	"l": {depth: 1, width: 1, most: 512, compact: []string{"model.8", "up4", "out4", "out5"}},
	"x": {depth: 1, width: 1.25, most: 512, compact: []string{"model.6", "model.8", "up4", "out4", "out5"}},
}

// apart halves the image with a depthwise convolution (SCDown).
func apart(g *graph.Graph, name string, in int, out int64) int {
	return unit(g, name+".cv2", unit(g, name+".cv1", in, out, 1, 1, 1, true), out, 3, 2, out, false)
}

// compactBlock adds a C2fCIB: a C2f with depthwise and pointwise blocks.
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
