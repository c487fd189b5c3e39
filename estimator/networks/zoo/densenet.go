package zoo

import (
	"fmt"

	"carma/configs/models"
)

// denseNets are of Huang et al. 2017: each layer takes the outputs of all layers
// before it.
func denseNets() group {
	c := group{name: "densenet", description: "densely connected convolutions (DenseNet)"}
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
		c.entries = append(c.entries, classifier(fmt.Sprintf("densenet%d", d.depth), "classifier", func(g *graph) int {
			x := g.convNorm("conv0", "norm0", data, window{out: d.stem, kernel: 7, stride: 2, pad: 3})
			x = g.maxPool("pool0", g.inPlace(models.ReLU, "relu0", x), window{kernel: 3, stride: 2, pad: 1})
			for i, n := range d.repeats {
				x = g.denseBlock(fmt.Sprintf("denseblock%d", i+1), x, n, d.growth)
				if i < len(d.repeats)-1 {
					x = g.transition(fmt.Sprintf("transition%d", i+1), x)
				}
			}
			x = g.inPlace(models.ReLU, "relu5", g.batchNorm("norm5", x))
			return g.flatten(g.mean("avgpool", x))
		}))
	}
	return c
}

func (g *graph) denseBlock(name string, in, repeats int, growth int64) int {
	features := []int{in}
	for i := range repeats {
		features = append(features, g.denseLayer(fmt.Sprintf("%s.denselayer%d", name, i+1), features, growth))
	}
	return g.concat(name+".concat", features...)
}

func (g *graph) denseLayer(name string, features []int, growth int64) int {
	defer g.startBlock(name)()
	x := g.concat("concat", features...)
	x = g.inPlace(models.ReLU, "relu1", g.batchNorm("norm1", x))
	x = g.convNorm("conv1", "norm2", x, window{out: 4 * growth})
	x = g.inPlace(models.ReLU, "relu2", x)
	return g.conv("conv2", x, window{out: growth, kernel: 3, pad: 1})
}

func (g *graph) transition(name string, in int) int {
	defer g.module(name)()
	x := g.inPlace(models.ReLU, "relu", g.batchNorm("norm", in))
	x = g.conv("conv", x, window{out: g.shape(in)[0] / 2})
	return g.avgPool("pool", x, window{kernel: 2, stride: 2})
}
