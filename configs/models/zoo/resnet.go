package zoo

import (
	"fmt"

	"carma/configs/models"
)

var imageNet = settings{image: 224, classes: 1000}

// resnets are of He et al. 2016, "Deep Residual Learning"; the strides of
// bottlenecks sit in the 3 x 3 convolution, as in torchvision.
func resnets() group {
	c := group{name: "resnet", description: "residual networks (ResNet)"}
	for _, r := range []struct {
		depth      int
		repeats    [4]int
		bottleneck bool
	}{
		{18, [4]int{2, 2, 2, 2}, false},
		{34, [4]int{3, 4, 6, 3}, false},
		{50, [4]int{3, 4, 6, 3}, true},
		{101, [4]int{3, 4, 23, 3}, true},
		{152, [4]int{3, 8, 36, 3}, true},
	} {
		c.entries = append(c.entries, entry{
			name: fmt.Sprintf("resnet%d", r.depth), kind: models.Conv, batch: 32, size: imageNet,
			build: func(g *graph, s settings) {
				g.photo(3, s)
				stages := g.resnet(data, r.repeats, r.bottleneck)
				x := g.flatten(g.mean("avgpool", stages[4]))
				g.classify(g.linear("fc", x, s.classes, true))
			},
		})
	}
	return c
}

// resnet builds the convolutions and returns the outputs of the stem and of
// the four stages.
func (g *graph) resnet(in int, repeats [4]int, bottleneck bool) [5]int {
	x := g.convNorm("conv1", "bn1", in, window{out: 64, kernel: 7, stride: 2, pad: 3})
	x = g.inPlace(models.ReLU, "relu", x)
	stages := [5]int{x}
	x = g.maxPool("maxpool", x, window{kernel: 3, stride: 2, pad: 1})
	width := int64(64)
	for stage, n := range repeats {
		for i := range n {
			stride := int64(1)
			if stage > 0 && i == 0 {
				stride = 2
			}
			x = g.residual(fmt.Sprintf("layer%d.%d", stage+1, i), x, width, stride, bottleneck)
		}
		stages[stage+1] = x
		width *= 2
	}
	return stages
}

// residual adds a block: its convolutions, then the input in place.
func (g *graph) residual(name string, in int, width, stride int64, bottleneck bool) int {
	defer g.startBlock(name)()
	windows := []window{{out: width, kernel: 3, pad: 1, stride: stride}, {out: width, kernel: 3, pad: 1}}
	if bottleneck {
		windows = []window{{out: width}, {out: width, kernel: 3, pad: 1, stride: stride}, {out: 4 * width}}
	}
	x := in
	for i, w := range windows {
		if i > 0 {
			x = g.inPlace(models.ReLU, "relu", x)
		}
		x = g.convNorm(fmt.Sprintf("conv%d", i+1), fmt.Sprintf("bn%d", i+1), x, w)
	}
	out := windows[len(windows)-1].out
	if stride != 1 || g.shape(in)[0] != out {
		in = g.convNorm("downsample.0", "downsample.1", in, window{out: out, stride: stride})
	}
	return g.inPlace(models.ReLU, "relu", g.plusInPlace("add", x, in))
}
