package vision

import (
	"fmt"
	"math"

	"carma/configs/models"
	"carma/estimator/networks/graph"
)

// EfficientNets returns the networks of Tan and Le 2019, each with its own image size.
func EfficientNets() graph.Group {
	c := graph.Group{Name: "efficientnet", Description: "scaled inverted residuals with squeeze and excitation (EfficientNet)"}
	for i, v := range []struct {
		width, depth float64
		image        int64
	}{
		{1, 1, 224}, {1, 1.1, 240}, {1.1, 1.2, 260}, {1.2, 1.4, 300}, {1.4, 1.8, 380}, {1.6, 2.2, 456}, {1.8, 2.6, 528},
		{2, 3.1, 600},
	} {
		e := graph.Classifier(fmt.Sprintf("efficientnet_b%d", i), "classifier.1", efficientNet(v.width, v.depth))
		e.Size.Image = v.image
		if i == 0 {
			e = e.Called("efficientnet")
		}
		c.Entries = append(c.Entries, e)
	}
	return c
}

func efficientNet(width, depth float64) func(*graph.Graph) int {
	return func(g *graph.Graph) int {
		x := activated(g, "features.0", graph.Data, graph.Window{Out: divisible(32 * width), Kernel: 3, Stride: 2, Pad: 1}, models.SiLU)
		number := 0
		for stage, r := range []struct {
			expand, kernel, stride int64
			out, repeats           float64
		}{
			{1, 3, 1, 16, 1},
			{6, 3, 2, 24, 2},
			{6, 5, 2, 40, 2},
			{6, 3, 2, 80, 3},
			{6, 5, 1, 112, 3},
			{6, 5, 2, 192, 4},
			{6, 3, 1, 320, 1},
		} {
			for i := range int(math.Ceil(r.repeats * depth)) {
				from, first := g.Shape(x)[0], number == 0
				number++
				x = inverted{
					prefix: "block.", wide: divisible(float64(from * r.expand)), out: divisible(r.out * width), kernel: r.kernel, stride: only(r.stride, i), activation: models.SiLU,
					squeeze: func(x int) int {
						return squeeze(g, "block.se", x, max(1, from/4), g.InPlace, models.SiLU, models.Sigmoid)
					},
					add: func(name string, x, in int) int {
						if !first {
							x = g.Skip("stochastic_depth", x)
						}
						return g.PlusInPlace(name, x, in)
					},
				}.build(g, fmt.Sprintf("features.%d.%d", stage+1, i), x)
			}
		}
		x = activated(g, "features.8", x, graph.Window{Out: 4 * g.Shape(x)[0]}, models.SiLU)
		return g.DropInPlace("classifier.0", g.Flatten(g.Mean("avgpool", x)))
	}
}
