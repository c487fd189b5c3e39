package zoo

import (
	"fmt"

	"carma/configs/models"
)

// convNeXts are of Liu et al. 2022.
func convNeXts() group {
	c := group{name: "convnext", description: "convolutions in the manner of transformers (ConvNeXt)"}
	for _, v := range []struct {
		name    string
		repeats [4]int
		width   int64
	}{
		{"tiny", [4]int{3, 3, 9, 3}, 96},
		{"small", [4]int{3, 3, 27, 3}, 96},
		{"base", [4]int{3, 3, 27, 3}, 128},
		{"large", [4]int{3, 3, 27, 3}, 192},
	} {
		c.entries = append(c.entries, classifier("convnext_"+v.name, "classifier.2", func(g *graph) int {
			return g.convNeXt(v.repeats, v.width)
		}).called("convnext_"+v.name[:1]))
	}
	return c
}

func (g *graph) convNeXt(repeats [4]int, width int64) int {
	x := g.conv("features.0.0", data, window{out: width, kernel: 4, stride: 4, bias: true})
	x = g.layerNorm2d("features.0.1", x)
	for stage, n := range repeats {
		if stage > 0 {
			width *= 2
			x = g.layerNorm2d(fmt.Sprintf("features.%d.0", 2*stage), x)
			x = g.conv(fmt.Sprintf("features.%d.1", 2*stage), x, window{out: width, kernel: 2, stride: 2, bias: true})
		}
		for i := range n {
			x = g.convNeXtBlock(fmt.Sprintf("features.%d.%d", 2*stage+1, i), x, stage+i > 0)
		}
	}
	return g.flatten(g.layerNorm2d("classifier.0", g.mean("avgpool", x)))
}

// channelsLast and channelsFirst permute the dimensions of an image; both are
// views.
func (g *graph) channelsLast(in int) int {
	s := g.shape(in)
	return g.view("permute", in, s[1], s[2], s[0])
}

func (g *graph) channelsFirst(in int) int {
	s := g.shape(in)
	return g.view("permute", in, s[2], s[0], s[1])
}

func (g *graph) layerNorm2d(name string, in int) int {
	return g.channelsFirst(g.layerNorm(name, g.channelsLast(in)))
}

func (g *graph) convNeXtBlock(name string, in int, skip bool) int {
	defer g.startBlock(name)()
	width := g.shape(in)[0]
	x := g.conv("block.0", in, window{out: width, kernel: 7, pad: 3, groups: width, bias: true})
	x = g.layerNorm("block.2", g.channelsLast(x))
	x = g.unary(models.GELU, "block.4", g.linear("block.3", x, 4*width, true))
	x = g.channelsFirst(g.linear("block.5", x, width, true))
	x = g.weighted("layer_scale", x, width)
	if skip {
		x = g.skip("stochastic_depth", x)
	}
	return g.plusInPlace("add", x, in)
}
