package vision

import (
	"fmt"

	"carma/configs/models"
	"carma/estimator/networks/graph"
)

// DenseNets returns the networks of Huang et al. 2017: each layer takes the outputs of
// all layers before it.
func DenseNets() graph.Group {
	c := graph.Group{Name: "densenet", Description: "densely connected convolutions (DenseNet)"}
	for _, d := range []struct {
		depth        int
		repeats      [4]int
		growth, stem int64
	}{
		{121, [4]int{6, 12, 24, 16}, 32, 64},
		{161, [4]int{6, 12, 36, 24}, 48, 96},
		{169, [4]int{6, 12, 32, 32}, 32, 64},
		{201, [4]int{6, 12, 48, 32}, 32, 64},
	} {
		c.Entries = append(c.Entries, graph.Classifier(fmt.Sprintf("densenet%d", d.depth), "classifier", func(g *graph.Graph) int {
			x := g.ConvNorm("conv0", "norm0", graph.Data, graph.Window{Out: d.stem, Kernel: 7, Stride: 2, Pad: 3})
			x = g.MaxPool("pool0", g.InPlace(models.ReLU, "relu0", x), graph.Window{Kernel: 3, Stride: 2, Pad: 1})
			for i, n := range d.repeats {
				x = denseBlock(g, fmt.Sprintf("denseblock%d", i+1), x, n, d.growth)
				if i < len(d.repeats)-1 {
					x = transition(g, fmt.Sprintf("transition%d", i+1), x)
				}
			}
			x = g.InPlace(models.ReLU, "relu5", g.BatchNorm("norm5", x))
			return g.Flatten(g.Mean("avgpool", x))
		}))
	}
	return c
}

func denseBlock(g *graph.Graph, name string, in, repeats int, growth int64) int {
	features := []int{in}
	for i := range repeats {
		features = append(features, denseLayer(g, fmt.Sprintf("%s.denselayer%d", name, i+1), features, growth))
	}
	return g.Concat(name+".concat", features...)
}

func denseLayer(g *graph.Graph, name string, features []int, growth int64) int {
	defer g.StartBlock(name)()
	x := g.Concat("concat", features...)
	x = g.InPlace(models.ReLU, "relu1", g.BatchNorm("norm1", x))
	x = g.ConvNorm("conv1", "norm2", x, graph.Window{Out: 4 * growth})
	x = g.InPlace(models.ReLU, "relu2", x)
	return g.Conv("conv2", x, graph.Window{Out: growth, Kernel: 3, Pad: 1})
}

func transition(g *graph.Graph, name string, in int) int {
	defer g.Module(name)()
	x := g.InPlace(models.ReLU, "relu", g.BatchNorm("norm", in))
	x = g.Conv("conv", x, graph.Window{Out: g.Shape(in)[0] / 2})
	return g.AvgPool("pool", x, graph.Window{Kernel: 2, Stride: 2})
}
