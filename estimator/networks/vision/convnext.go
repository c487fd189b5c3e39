package vision

import (
	"fmt"

	"carma/configs/models"
	"carma/estimator/networks/graph"
)

// ConvNeXts returns the networks of Liu et al. 2022.
func ConvNeXts() graph.Group {
	named := func(size string, third int, width int64) graph.Network {
		return graph.Classifier("convnext_"+size, "classifier.2", func(g *graph.Graph) int {
			return convNeXt(g, [4]int{3, 3, third, 3}, width)
		}).Called("convnext_" + size[:1])
	}
	return graph.Group{Name: "convnext", Description: "convolutions in the manner of transformers (ConvNeXt)", Entries: []graph.Network{
		named("tiny", 9, 96), named("small", 27, 96), named("base", 27, 128), named("large", 27, 192),
	}}
}

func convNeXt(g *graph.Graph, repeats [4]int, width int64) int {
	x := g.Conv("features.0.0", graph.Data, graph.Window{Out: width, Kernel: 4, Stride: 4, Bias: true})
	x = g.LayerNorm2d("features.0.1", x)
	for stage, n := range repeats {
		if stage > 0 {
			width *= 2
			x = g.LayerNorm2d(fmt.Sprintf("features.%d.0", 2*stage), x)
			x = g.Conv(fmt.Sprintf("features.%d.1", 2*stage), x, graph.Window{Out: width, Kernel: 2, Stride: 2, Bias: true})
		}
		for i := range n {
			x = convNeXtBlock(g, fmt.Sprintf("features.%d.%d", 2*stage+1, i), x, stage+i > 0)
		}
	}
	return g.Flatten(g.LayerNorm2d("classifier.0", g.Mean("avgpool", x)))
}

func convNeXtBlock(g *graph.Graph, name string, in int, skip bool) int {
	defer g.StartBlock(name)()
	width := g.Shape(in)[0]
	x := g.Conv("block.0", in, graph.Window{Out: width, Kernel: 7, Pad: 3, Groups: width, Bias: true})
	x = g.LayerNorm("block.2", g.ChannelsLast(x))
	x = g.Unary(models.GELU, "block.4", g.Linear("block.3", x, 4*width, true))
	x = g.ChannelsFirst(g.Linear("block.5", x, width, true))
	x = g.Weighted("layer_scale", x, width)
	if skip {
		x = g.Skip("stochastic_depth", x)
	}
	return g.PlusInPlace("add", x, in)
}
