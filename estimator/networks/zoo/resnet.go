package zoo

import (
	"fmt"

	"carma/configs/models"
)

// resnet is a residual network: how often each stage repeats its block.
// Bottlenecks have narrow 3 x 3 convolutions, with so many groups of so many
// channels in the first stage.
type resnet struct {
	repeats         [4]int
	bottleneck      bool
	groups, channel int64
}

// resnets are of He et al. 2016, "Deep Residual Learning". As in torchvision, the
// stride of a bottleneck is in its 3 x 3 convolution. ResNeXt (Xie et al. 2017)
// and wide networks (Zagoruyko and Komodakis 2016) have other 3 x 3 convolutions.
func resnets() group {
	c := group{name: "resnet", description: "residual networks (ResNet, ResNeXt, wide ResNet)"}
	for _, r := range []struct {
		name string
		resnet
	}{
		{"resnet18", resnet{[4]int{2, 2, 2, 2}, false, 1, 64}},
		{"resnet34", resnet34},
		{"resnet50", resnet50},
		{"resnet101", resnet101},
		{"resnet152", resnet{[4]int{3, 8, 36, 3}, true, 1, 64}},
		{"resnext50_32x4d", resnet{[4]int{3, 4, 6, 3}, true, 32, 4}},
		{"resnext101_32x8d", resnet{[4]int{3, 4, 23, 3}, true, 32, 8}},
		{"wide_resnet50_2", resnet{[4]int{3, 4, 6, 3}, true, 1, 128}},
		{"wide_resnet101_2", resnet{[4]int{3, 4, 23, 3}, true, 1, 128}},
	} {
		c.entries = append(c.entries, classifier(r.name, "fc", func(g *graph) int {
			return g.flatten(g.mean("avgpool", g.resnet(data, r.resnet)[4]))
		}))
	}
	return c
}

// Other networks build on these.
var (
	resnet34  = resnet{[4]int{3, 4, 6, 3}, false, 1, 64}
	resnet50  = resnet{[4]int{3, 4, 6, 3}, true, 1, 64}
	resnet101 = resnet{[4]int{3, 4, 23, 3}, true, 1, 64}
)

// trunk is how a network uses a ResNet. Zero values mean: as it is.
type trunk struct {
	dilated int  // so many of the last stages have dilated convolutions instead of a stride
	frozen  int  // the stem and so many stages without it are not trained; 0: all is trained
	fixed   bool // batch norms are fixed factors and sums (FrozenBatchNorm2d)
}

// resnet builds the convolutions and returns the outputs of the stem and of
// the four stages.
func (g *graph) resnet(in int, r resnet) [5]int { return g.resnetAs(in, r, trunk{}) }

func (g *graph) resnetAs(in int, r resnet, use trunk) [5]int {
	from := len(g.layers)
	g.fixed = use.fixed
	x := g.convNorm("conv1", "bn1", in, window{out: 64, kernel: 7, stride: 2, pad: 3})
	x = g.inPlace(models.ReLU, "relu", x)
	stages := [5]int{x}
	x = g.maxPool("maxpool", x, window{kernel: 3, stride: 2, pad: 1})
	width := int64(64)
	for stage, n := range r.repeats {
		for i := range n {
			stride := int64(1)
			if stage > 0 && stage < 4-use.dilated && i == 0 {
				stride = 2
			}
			x = g.residual(fmt.Sprintf("layer%d.%d", stage+1, i), x, r, width, stride)
		}
		stages[stage+1] = x
		width *= 2
		if stage == use.frozen-1 {
			g.untrained(from)
		}
	}
	g.fixed = false
	return stages
}

// residual adds a block: its convolutions, then the addition of the input in
// place.
func (g *graph) residual(name string, in int, r resnet, width, stride int64) int {
	defer g.startBlock(name)()
	windows := []window{{out: width, kernel: 3, pad: 1, stride: stride}, {out: width, kernel: 3, pad: 1}}
	if r.bottleneck {
		narrow := width / 64 * r.channel * r.groups
		windows = []window{
			{out: narrow}, {out: narrow, kernel: 3, pad: 1, stride: stride, groups: r.groups}, {out: 4 * width},
		}
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
