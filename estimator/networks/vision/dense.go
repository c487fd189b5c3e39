package vision

import (
	"slices"

	"carma/configs/models"
	"carma/estimator/networks/graph"
)

// LabelNetworks returns torchvision's networks that classify each pixel (0.29,
// models/segmentation). The reference scripts train on images of 480 pixels, with a
// second classifier on features from the middle of the backbone (aux_loss), except
// LR-ASPP.
func LabelNetworks() graph.Group {
	c := graph.Group{Name: "deeplab", Description: "segmentation of images (DeepLabV3, FCN, LR-ASPP)"}
	for _, n := range []struct {
		name  string
		build func(*graph.Graph, graph.Sizes)
	}{
		{"deeplabv3_resnet50", dilated("resnet50", atrous)},
		{"deeplabv3_resnet101", dilated("resnet101", atrous)},
		{"deeplabv3_mobilenet_v3_large", mobileAtrous},
		{"fcn_resnet50", dilated("resnet50", plainHead)},
		{"fcn_resnet101", dilated("resnet101", plainHead)},
		{"lraspp_mobilenet_v3_large", mobileLite},
	} {
		c.Entries = append(c.Entries, graph.Network{Name: n.name, Kind: models.Conv, Batch: 8, Size: graph.Sizes{Image: 480, Classes: 21}, Build: n.build, Finish: AsReferences})
	}
	return c
}

// AsReferences sets gradients to none before the backward pass, as torchvision's
// reference scripts do. So the previous step's gradients exist during the forward pass.
func AsReferences(c *models.Config) { c.Train.ZeroGrad = "backward" }

// A head computes the scores of the classes from features.
type head func(g *graph.Graph, name string, in int, classes int64) int

// dilated returns a network over a ResNet whose last two stages do not halve the image.
func dilated(resNet string, h head) func(*graph.Graph, graph.Sizes) {
	return func(g *graph.Graph, s graph.Sizes) {
		labelled(g, s)
		leave := g.Module("backbone")
		stages := ResNet(g, graph.Data, resNet, Trunk{Dilated: 2})
		leave()
		labels(g, s, stages[4], stages[3], h)
	}
}

// mobileDilated returns the rows of a MobileNetV3 whose last halving is dilated instead.
func mobileDilated() []mobileRow {
	rows := slices.Clone(mobileLarge)
	rows[12].stride = 1
	return rows
}

func mobileAtrous(g *graph.Graph, s graph.Sizes) {
	labelled(g, s)
	leave := g.Module("backbone")
	features := mobileFeatures(g, mobileDilated())
	leave()
	labels(g, s, features[16], features[4], atrous)
}

// labelled declares images and a class for each of their pixels.
func labelled(g *graph.Graph, s graph.Sizes) {
	g.Input(0, 3, s.Image, s.Image)
	g.Input(8, s.Image, s.Image)
}

// labels adds the scores of both classifiers, enlarged to the image, and their losses.
// The script keeps both scores.
func labels(g *graph.Graph, s graph.Sizes, out, aux int, h head) {
	image := []int64{s.Classes, s.Image, s.Image}
	first := g.Op(models.Upsample, "interpolate", image, h(g, "classifier", out, s.Classes))
	second := g.Op(models.Upsample, "aux_interpolate", image, plainHead(g, "aux_classifier", aux, s.Classes))
	g.CrossEntropy("loss", first, labelsInput)
	g.Total(g.CrossEntropy("aux_loss", second, labelsInput), first, second)
}

// labelsInput is the input with the classes of the pixels.
const labelsInput = graph.Second

// normed adds a convolution without bias, its batch norm and ReLU.
func normed(g *graph.Graph, name string, in int, w graph.Window) int {
	return g.Unary(models.ReLU, name+".2", g.ConvNorm(name+".0", name+".1", in, w))
}

// plainHead adds torchvision's FCNHead: two convolutions.
func plainHead(g *graph.Graph, name string, in int, classes int64) int {
	defer g.Module(name)()
	x := normed(g, "0", in, graph.W3(g.Shape(in)[0]/4))
	return g.Conv("4", g.Drop("3", x), graph.Window{Out: classes, Bias: true})
}

// atrous adds DeepLabV3's head (arXiv 1706.05587): the features, three dilated
// convolutions of them, and their mean; then two convolutions. A dilated convolution has
// the sizes of a plain one.
func atrous(g *graph.Graph, name string, in int, classes int64) int {
	defer g.Module(name)()
	const wide = 256
	s := g.Shape(in)
	parts := []int{normed(g, "0.convs.0", in, graph.Window{Out: wide})}
	for _, part := range []string{"0.convs.1", "0.convs.2", "0.convs.3"} {
		parts = append(parts, normed(g, part, in, graph.W3(wide)))
	}
	mean := normed(g, "0.convs.4", g.Mean("0.convs.4.mean", in), graph.Window{Out: wide})
	parts = append(parts, g.Op(models.Upsample, "0.convs.4.interpolate", []int64{wide, s[1], s[2]}, mean))
	x := normed(g, "0.project", g.Concat("0.cat", parts...), graph.Window{Out: wide})
	x = normed(g, "1", g.Drop("0.project.3", x), graph.W3(wide))
	return g.Conv("4", x, graph.Window{Out: classes, Bias: true})
}

// mobileLite adds LR-ASPP (arXiv 1905.02244, section 6.4): the last features, scaled by
// their mean, and finer ones. The scores of both are added.
func mobileLite(g *graph.Graph, s graph.Sizes) {
	labelled(g, s)
	leave := g.Module("backbone")
	features := mobileFeatures(g, mobileDilated())
	leave()
	low, high := features[4], features[16]
	leave = g.Module("classifier")
	x := g.InPlace(models.ReLU, "cbr.2", g.ConvNorm("cbr.0", "cbr.1", high, graph.Window{Out: 128}))
	scale := g.Unary(models.Sigmoid, "scale.2", g.Conv("scale.1", g.Mean("scale.0", high), graph.Window{Out: 128}))
	x = g.Times("mul", x, scale)
	fine := g.Shape(low)
	x = g.Op(models.Upsample, "interpolate", []int64{128, fine[1], fine[2]}, x)
	a := g.Conv("low_classifier", low, graph.Window{Out: s.Classes, Bias: true})
	x = g.Plus("add", a, g.Conv("high_classifier", x, graph.Window{Out: s.Classes, Bias: true}))
	leave()
	x = g.Op(models.Upsample, "interpolate", []int64{s.Classes, s.Image, s.Image}, x)
	g.Total(g.CrossEntropy("loss", x, labelsInput), x)
}
