package zoo

import (
	"fmt"

	"carma/configs/models"
)

// mnasNets are of Tan et al. 2019, in torchvision's widths.
func mnasNets() group {
	return group{name: "mnasnet", description: "searched inverted residuals for phones (MnasNet)", entries: []entry{
		classifier("mnasnet0_5", "classifier.1", mnasNet(0.5)), classifier("mnasnet0_75", "classifier.1", mnasNet(0.75)),
		classifier("mnasnet1_0", "classifier.1", mnasNet(1)).called("mnasnet"), classifier("mnasnet1_3", "classifier.1", mnasNet(1.3)),
	}}
}

func mnasNet(alpha float64) func(*graph) int {
	width := func(channels float64) int64 { return divisible(alpha * channels) }
	return func(g *graph) int {
		x := g.activated("layers.0", data, window{out: width(32), kernel: 3, stride: 2, pad: 1}, models.ReLU)
		x = g.activated("layers.3", x, window{out: width(32), kernel: 3, pad: 1, groups: width(32)}, models.ReLU)
		x = g.activated("layers.6", x, window{out: width(16)}, "")
		for i, r := range []struct {
			kernel, expand, out int64
			repeats             int
			stride              int64
		}{
			{3, 3, 24, 3, 2},
			{5, 3, 40, 3, 2},
			{5, 6, 80, 3, 2},
			{3, 6, 96, 2, 1},
			{5, 6, 192, 4, 2},
			{3, 6, 320, 1, 1},
		} {
			for k := range r.repeats {
				x = inverted{
					wide: r.expand * g.shape(x)[0], out: width(float64(r.out)), kernel: r.kernel, stride: only(r.stride, k), activation: models.ReLU, add: g.plus,
				}.build(g, fmt.Sprintf("layers.%d.%d", 8+i, k), x)
			}
		}
		x = g.activated("layers.14", x, window{out: 1280}, models.ReLU)
		return g.dropInPlace("classifier.0", g.flatten(g.mean("mean", x)))
	}
}
