package vision

import (
	"fmt"

	"carma/configs/models"
	"carma/estimator/networks/graph"
)

// MnasNets returns the networks of Tan et al. 2019, in torchvision's widths.
func MnasNets() graph.Group {
	return graph.Group{Name: "mnasnet", Description: "searched inverted residuals for phones (MnasNet)", Entries: []graph.Network{
		graph.Classifier("mnasnet0_5", "classifier.1", mnasNet(0.5)), graph.Classifier("mnasnet0_75", "classifier.1", mnasNet(0.75)),
		graph.Classifier("mnasnet1_0", "classifier.1", mnasNet(1)).Called("mnasnet"), graph.Classifier("mnasnet1_3", "classifier.1", mnasNet(1.3)),
	}}
}

func mnasNet(alpha float64) func(*graph.Graph) int {
	width := func(channels float64) int64 { return divisible(alpha * channels) }
	return func(g *graph.Graph) int {
		x := activated(g, "layers.0", graph.Data, graph.Window{Out: width(32), Kernel: 3, Stride: 2, Pad: 1}, models.ReLU)
		x = activated(g, "layers.3", x, graph.Window{Out: width(32), Kernel: 3, Pad: 1, Groups: width(32)}, models.ReLU)
		x = activated(g, "layers.6", x, graph.Window{Out: width(16)}, "")
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
					wide: r.expand * g.Shape(x)[0], out: width(float64(r.out)), kernel: r.kernel, stride: only(r.stride, k), activation: models.ReLU, add: g.Plus,
				}.build(g, fmt.Sprintf("layers.%d.%d", 8+i, k), x)
			}
		}
		x = activated(g, "layers.14", x, graph.Window{Out: 1280}, models.ReLU)
		return g.DropInPlace("classifier.0", g.Flatten(g.Mean("mean", x)))
	}
}
