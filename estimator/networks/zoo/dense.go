package zoo

import (
	"slices"

	"carma/configs/models"
)

// labelNetworks give each pixel a class, as torchvision has them (0.29,
// models/segmentation). Their references train on images of 480 pixels, with a second
// classifier on features of the middle of the backbone (aux_loss), but LR-ASPP.
func labelNetworks() group {
	c := group{name: "deeplab", description: "segmentation of images (DeepLabV3, FCN, LR-ASPP)"}
	for _, n := range []struct {
		name  string
		build func(*graph, settings)
	}{
		{"deeplabv3_resnet50", dilated(resnet50, (*graph).atrous)},
		{"deeplabv3_resnet101", dilated(resnet101, (*graph).atrous)},
		{"deeplabv3_mobilenet_v3_large", mobileAtrous},
		{"fcn_resnet50", dilated(resnet50, (*graph).plainHead)},
		{"fcn_resnet101", dilated(resnet101, (*graph).plainHead)},
		{"lraspp_mobilenet_v3_large", mobileLite},
	} {
		c.entries = append(c.entries, entry{name: n.name, kind: models.Conv, batch: 8, size: settings{image: 480, classes: 21}, build: n.build, finish: asReferences})
	}
	return c
}

// asReferences sets gradients to none when torchvision's reference scripts do: before the
// backward pass, so those of the step before are there in the forward pass.
func asReferences(c *models.Config) { c.Train.ZeroGrad = "backward" }

// A head gives scores of the classes for features.
type head func(g *graph, name string, in int, classes int64) int

// dilated is a network over a ResNet whose last two stages do not halve the image.
func dilated(r resnet, h head) func(*graph, settings) {
	return func(g *graph, s settings) {
		g.labelled(s)
		leave := g.module("backbone")
		stages := g.resnetAs(data, r, trunk{dilated: 2})
		leave()
		g.labels(s, stages[4], stages[3], h)
	}
}

// mobileDilated are the rows of a MobileNetV3 whose last halving is dilated instead.
func mobileDilated() []mobileRow {
	rows := slices.Clone(mobileLarge)
	rows[12].stride = 1
	return rows
}

func mobileAtrous(g *graph, s settings) {
	g.labelled(s)
	leave := g.module("backbone")
	features := g.mobileFeatures(mobileDilated())
	leave()
	g.labels(s, features[16], features[4], (*graph).atrous)
}

// labelled declares images and a class for each of their pixels.
func (g *graph) labelled(s settings) {
	g.input(0, 3, s.image, s.image)
	g.input(8, s.image, s.image)
}

// labels are the scores of both classifiers, enlarged to the image, and their losses.
// The script holds both scores.
func (g *graph) labels(s settings, out, aux int, h head) {
	image := []int64{s.classes, s.image, s.image}
	first := g.op(models.Upsample, "interpolate", image, h(g, "classifier", out, s.classes))
	second := g.op(models.Upsample, "aux_interpolate", image, g.plainHead("aux_classifier", aux, s.classes))
	g.crossEntropy("loss", first, labelsInput)
	g.total(g.crossEntropy("aux_loss", second, labelsInput), first, second)
}

// total ends a network with the sum of its losses. The script holds scores until the
// backward pass is over; it gives up those of the step before when the network returns.
func (g *graph) total(loss int, scores ...int) {
	i := g.keeping(g.loss("total", loss), models.Keeps{})
	g.layers[i].Holds = scores
}

// labelsInput is the input that has the classes of the pixels.
const labelsInput = second

// normed is a convolution without bias, its batch norm and ReLU.
func (g *graph) normed(name string, in int, w window) int {
	return g.unary(models.ReLU, name+".2", g.convNorm(name+".0", name+".1", in, w))
}

// plainHead is torchvision's FCNHead: two convolutions.
func (g *graph) plainHead(name string, in int, classes int64) int {
	defer g.module(name)()
	x := g.normed("0", in, w3(g.shape(in)[0]/4))
	return g.conv("4", g.drop("3", x), window{out: classes, bias: true})
}

// atrous is DeepLabV3's head (arXiv 1706.05587): the features as they are, seen three
// times through dilated convolutions, and their mean; then two convolutions. A dilated
// convolution has the sizes of a plain one.
func (g *graph) atrous(name string, in int, classes int64) int {
	defer g.module(name)()
	const wide = 256
	s := g.shape(in)
	parts := []int{g.normed("0.convs.0", in, window{out: wide})}
	for _, part := range []string{"0.convs.1", "0.convs.2", "0.convs.3"} {
		parts = append(parts, g.normed(part, in, w3(wide)))
	}
	mean := g.normed("0.convs.4", g.mean("0.convs.4.mean", in), window{out: wide})
	parts = append(parts, g.op(models.Upsample, "0.convs.4.interpolate", []int64{wide, s[1], s[2]}, mean))
	x := g.normed("0.project", g.concat("0.cat", parts...), window{out: wide})
	x = g.normed("1", g.drop("0.project.3", x), w3(wide))
	return g.conv("4", x, window{out: classes, bias: true})
}

// mobileLite is LR-ASPP (arXiv 1905.02244, section 6.4): the last features, scaled by
// their mean, and finer ones, each with scores, which are added.
func mobileLite(g *graph, s settings) {
	g.labelled(s)
	leave := g.module("backbone")
	features := g.mobileFeatures(mobileDilated())
	leave()
	low, high := features[4], features[16]
	leave = g.module("classifier")
	x := g.inPlace(models.ReLU, "cbr.2", g.convNorm("cbr.0", "cbr.1", high, window{out: 128}))
	scale := g.unary(models.Sigmoid, "scale.2", g.conv("scale.1", g.mean("scale.0", high), window{out: 128}))
	x = g.times("mul", x, scale)
	fine := g.shape(low)
	x = g.op(models.Upsample, "interpolate", []int64{128, fine[1], fine[2]}, x)
	a := g.conv("low_classifier", low, window{out: s.classes, bias: true})
	x = g.plus("add", a, g.conv("high_classifier", x, window{out: s.classes, bias: true}))
	leave()
	x = g.op(models.Upsample, "interpolate", []int64{s.classes, s.image, s.image}, x)
	g.total(g.crossEntropy("loss", x, labelsInput), x)
}
