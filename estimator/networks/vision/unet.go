package vision

import (
	"fmt"

	"carma/configs/models"
	"carma/estimator/networks/graph"
)

// UNets returns the U-Net (Ronneberger et al. 2015) over a ResNet-34. Its decoder doubles
// the image five times.
func UNets() graph.Group {
	return graph.Group{Name: "unet", Description: "segmentation of images (U-Net)", Entries: []graph.Network{{
		Name: "unet", Aliases: []string{"unet_resnet34"}, Kind: models.Conv, Batch: 8,
		Size: graph.Sizes{Image: 512, Classes: 21}, Build: unet,
	}}}
}

func unet(g *graph.Graph, s graph.Sizes) {
	if s.Image%32 != 0 {
		g.Fail("the image has %d pixels, not a multiple of 32", s.Image)
		s.Image = 32
	}
	g.Input(0, 3, s.Image, s.Image)
	g.Input(8, s.Image, s.Image)
	leave := g.Module("encoder")
	stages := ResNet(g, graph.Data, "resnet34", Trunk{})
	leave()
	x := stages[4]
	for i, out := range []int64{256, 128, 64, 32, 16} {
		skips := []int{}
		if i < 4 {
			skips = append(skips, stages[3-i])
		}
		x = decode(g, fmt.Sprintf("decoder.blocks.%d", i), x, skips, out)
	}
	x = g.Conv("segmentation_head.0", x, graph.Window{Out: s.Classes, Kernel: 3, Pad: 1, Bias: true})
	g.Classify(x)
}

func decode(g *graph.Graph, name string, in int, skips []int, out int64) int {
	defer g.StartBlock(name)()
	x := g.Upsample("interpolate", in)
	if len(skips) > 0 {
		x = g.Concat("concat", append([]int{x}, skips...)...)
	}
	for i := range 2 {
		conv := fmt.Sprintf("conv%d", i+1)
		x = activated(g, conv, x, graph.W3(out), models.ReLU)
	}
	return x
}
