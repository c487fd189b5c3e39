package vision

import (
	"fmt"
	"slices"

	"carma/configs/models"
	"carma/estimator/networks/graph"
)

// resNet is a residual network: the number of blocks of each stage. Bottlenecks have
// narrow 3 x 3 convolutions, with a number of groups, and a number of channels in each
// group of the first stage.
type resNet struct {
	name            string
	repeats         [4]int
	bottleneck      bool
	groups, channel int64
}

// resNets lists the networks of He et al. 2016, "Deep Residual Learning". As in
// torchvision, the stride of a bottleneck is in its 3 x 3 convolution. ResNeXt (Xie et
// al. 2017) and wide networks (Zagoruyko and Komodakis 2016) have other 3 x 3
// convolutions.
var resNets = []resNet{
	{"resnet18", [4]int{2, 2, 2, 2}, false, 1, 64},
	{"resnet34", [4]int{3, 4, 6, 3}, false, 1, 64},
	{"resnet50", [4]int{3, 4, 6, 3}, true, 1, 64},
	{"resnet101", [4]int{3, 4, 23, 3}, true, 1, 64},
	{"resnet152", [4]int{3, 8, 36, 3}, true, 1, 64},
	{"resnext50_32x4d", [4]int{3, 4, 6, 3}, true, 32, 4},
	{"resnext101_32x8d", [4]int{3, 4, 23, 3}, true, 32, 8},
	{"wide_resnet50_2", [4]int{3, 4, 6, 3}, true, 1, 128},
	{"wide_resnet101_2", [4]int{3, 4, 23, 3}, true, 1, 128},
}

// ResNets returns the residual networks.
func ResNets() graph.Group {
	c := graph.Group{Name: "resnet", Description: "residual networks (ResNet, ResNeXt, wide ResNet)"}
	for _, r := range resNets {
		c.Entries = append(c.Entries, graph.Classifier(r.name, "fc", func(g *graph.Graph) int {
			return g.Flatten(g.Mean("avgpool", ResNet(g, graph.Data, r.name, Trunk{})[4]))
		}))
	}
	return c
}

// Trunk describes a network's changes to a ResNet. Zero values change nothing.
type Trunk struct {
	Dilated int  // number of last stages that have dilated convolutions instead of a stride
	Frozen  int  // number of stages that, with the stem, are not trained, or 0 if all is trained
	Fixed   bool // batch norms are fixed (FrozenBatchNorm2d)
}

// ResNet builds the convolutions of the named network and returns the outputs of the stem
// and of the four stages.
func ResNet(g *graph.Graph, in int, name string, use Trunk) [5]int {
	r := resNets[slices.IndexFunc(resNets, func(r resNet) bool { return r.name == name })]
	from := len(g.Layers)
	g.Fixed = use.Fixed
	x := g.ConvNorm("conv1", "bn1", in, graph.Window{Out: 64, Kernel: 7, Stride: 2, Pad: 3})
	x = g.InPlace(models.ReLU, "relu", x)
	stages := [5]int{x}
	x = g.MaxPool("maxpool", x, graph.Window{Kernel: 3, Stride: 2, Pad: 1})
	width := int64(64)
	for stage, n := range r.repeats {
		for i := range n {
			stride := int64(1)
			if stage > 0 && stage < 4-use.Dilated && i == 0 {
				stride = 2
			}
			x = residual(g, fmt.Sprintf("layer%d.%d", stage+1, i), x, r, width, stride)
		}
		stages[stage+1] = x
		width *= 2
		if stage == use.Frozen-1 {
			g.Untrained(from)
		}
	}
	g.Fixed = false
	return stages
}

// residual adds a block: its convolutions, then the addition of the input in
// place.
func residual(g *graph.Graph, name string, in int, r resNet, width, stride int64) int {
	defer g.StartBlock(name)()
	windows := []graph.Window{{Out: width, Kernel: 3, Pad: 1, Stride: stride}, {Out: width, Kernel: 3, Pad: 1}}
	if r.bottleneck {
		narrow := width / 64 * r.channel * r.groups
		windows = []graph.Window{
			{Out: narrow}, {Out: narrow, Kernel: 3, Pad: 1, Stride: stride, Groups: r.groups}, {Out: 4 * width},
		}
	}
	x := in
	for i, w := range windows {
		if i > 0 {
			x = g.InPlace(models.ReLU, "relu", x)
		}
		x = g.ConvNorm(fmt.Sprintf("conv%d", i+1), fmt.Sprintf("bn%d", i+1), x, w)
	}
	out := windows[len(windows)-1].Out
	if stride != 1 || g.Shape(in)[0] != out {
		in = g.ConvNorm("downsample.0", "downsample.1", in, graph.Window{Out: out, Stride: stride})
	}
	return g.InPlace(models.ReLU, "relu", g.PlusInPlace("add", x, in))
}
