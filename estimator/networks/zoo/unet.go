package zoo

import (
	"fmt"

	"carma/configs/models"
)

// segmentation has the U-Net (Ronneberger et al. 2015) over a ResNet-34. Its
// decoder doubles the image five times.
func segmentation() group {
	return group{name: "unet", description: "segmentation of images (U-Net)", entries: []entry{{
		name: "unet", aliases: []string{"unet_resnet34"}, kind: models.Conv, batch: 8,
		size: settings{image: 512, classes: 21}, build: unet,
	}}}
}

func unet(g *graph, s settings) {
	if s.image%32 != 0 {
		g.fail("the image has %d pixels, not a multiple of 32", s.image)
		s.image = 32
	}
	g.input(0, 3, s.image, s.image)
	g.input(8, s.image, s.image)
	leave := g.module("encoder")
	stages := g.resnet(data, resnet34)
	leave()
	x := stages[4]
	for i, out := range []int64{256, 128, 64, 32, 16} {
		skips := []int{}
		if i < 4 {
			skips = append(skips, stages[3-i])
		}
		x = g.decode(fmt.Sprintf("decoder.blocks.%d", i), x, skips, out)
	}
	x = g.conv("segmentation_head.0", x, window{out: s.classes, kernel: 3, pad: 1, bias: true})
	g.classify(x)
}

func (g *graph) decode(name string, in int, skips []int, out int64) int {
	defer g.startBlock(name)()
	x := g.upsample("interpolate", in)
	if len(skips) > 0 {
		x = g.concat("concat", append([]int{x}, skips...)...)
	}
	for i := range 2 {
		conv := fmt.Sprintf("conv%d", i+1)
		x = g.activated(conv, x, w3(out), models.ReLU)
	}
	return x
}
