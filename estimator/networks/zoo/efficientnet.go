package zoo

import (
	"fmt"
	"math"

	"carma/configs/models"
)

// efficientNets are of Tan and Le 2019, each with its own image size.
func efficientNets() group {
	c := group{name: "efficientnet", description: "scaled inverted residuals with squeeze and excitation (EfficientNet)"}
	for i, v := range []struct {
		width, depth float64
		image        int64
	}{
		{1, 1, 224}, {1, 1.1, 240}, {1.1, 1.2, 260}, {1.2, 1.4, 300}, {1.4, 1.8, 380}, {1.6, 2.2, 456}, {1.8, 2.6, 528},
		{2, 3.1, 600},
	} {
		e := classifier(fmt.Sprintf("efficientnet_b%d", i), "classifier.1", efficientNet(v.width, v.depth))
		e.size.image = v.image
		if i == 0 {
			e = e.called("efficientnet")
		}
		c.entries = append(c.entries, e)
	}
	return c
}

func efficientNet(width, depth float64) func(*graph) int {
	return func(g *graph) int {
		x := g.activated("features.0", data, window{out: divisible(32 * width), kernel: 3, stride: 2, pad: 1}, models.SiLU)
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
				from, first := g.shape(x)[0], number == 0
				number++
				x = inverted{
					prefix: "block.", wide: divisible(float64(from * r.expand)), out: divisible(r.out * width), kernel: r.kernel, stride: only(r.stride, i), activation: models.SiLU,
					squeeze: func(x int) int {
						return g.squeeze("block.se", x, max(1, from/4), g.inPlace, models.SiLU, models.Sigmoid)
					},
					add: func(name string, x, in int) int {
						if !first {
							x = g.skip("stochastic_depth", x)
						}
						return g.plusInPlace(name, x, in)
					},
				}.build(g, fmt.Sprintf("features.%d.%d", stage+1, i), x)
			}
		}
		x = g.activated("features.8", x, window{out: 4 * g.shape(x)[0]}, models.SiLU)
		return g.dropInPlace("classifier.0", g.flatten(g.mean("avgpool", x)))
	}
}
