package vision

import (
	"fmt"

	"carma/configs/models"
	"carma/estimator/networks/graph"
)

// Inceptions returns the networks of Szegedy et al. 2016 (Inception v3) and Chollet 2017
// (Xception), for images of 299 pixels.
func Inceptions() graph.Group {
	of299 := func(e graph.Network) graph.Network {
		e.Size.Image = 299
		return e
	}
	aux := of299(graph.Network{Name: "inception_v3_aux", Kind: models.Conv, Batch: 32, Size: graph.ImageNet, Build: inceptionV3Aux})
	return graph.Group{Name: "inception", Description: "parallel convolutions (Inception v3, Xception)", Entries: []graph.Network{
		of299(graph.Classifier("inception_v3", "fc", func(g *graph.Graph) int {
			x, _ := inceptionV3(g)
			return x
		})).Called("inception"),
		aux,
		of299(graph.Classifier("xception", "fc", xception)).Called("legacy_xception"),
	}}
}

// basic adds a convolution, its batch norm, and ReLU in place.
func basic(g *graph.Graph, name string, in int, w graph.Window) int {
	x := g.ConvNorm(name+".conv", name+".bn", in, w)
	return g.InPlace(models.ReLU, name+".relu", x)
}

// branch applies basic convolutions one after the other.
func branch(g *graph.Graph, name string, in int, windows ...graph.Window) int {
	for i, w := range windows {
		in = basic(g, fmt.Sprintf("%s_%d", name, i+1), in, w)
	}
	return in
}

// across returns a long and narrow kernel, 1 high and n wide.
func across(out, n int64) graph.Window {
	return graph.Window{Out: out, Kernel: 1, Width: n, PadWidth: n / 2}
}
func down(out, n int64) graph.Window { return graph.Window{Out: out, Kernel: n, Width: 1, Pad: n / 2} }

// shrink halves an image, without padding.
func shrink(out int64) graph.Window { return graph.Window{Out: out, Kernel: 3, Stride: 2} }

// inceptionV3 adds the network and returns the vector of each photo, and the features for
// the second classifier.
func inceptionV3(g *graph.Graph) (vector, side int) {
	x := basic(g, "Conv2d_1a_3x3", graph.Data, shrink(32))
	x = basic(g, "Conv2d_2a_3x3", x, graph.Window{Out: 32, Kernel: 3})
	x = basic(g, "Conv2d_2b_3x3", x, graph.W3(64))
	x = g.MaxPool("maxpool1", x, shrink(0))
	x = basic(g, "Conv2d_3b_1x1", x, graph.W1(80))
	x = basic(g, "Conv2d_4a_3x3", x, graph.Window{Out: 192, Kernel: 3})
	x = g.MaxPool("maxpool2", x, shrink(0))
	for i, pooled := range []int64{32, 64, 64} {
		x = inceptionA(g, fmt.Sprintf("Mixed_5%c", 'b'+i), x, pooled)
	}
	x = inceptionB(g, "Mixed_6a", x)
	for i, narrow := range []int64{128, 160, 160, 192} {
		x = inceptionC(g, fmt.Sprintf("Mixed_6%c", 'b'+i), x, narrow)
	}
	side = x
	x = inceptionD(g, "Mixed_7a", x)
	x = inceptionE(g, "Mixed_7b", x)
	x = inceptionE(g, "Mixed_7c", x)
	return g.Flatten(g.Drop("dropout", g.Mean("avgpool", x))), side
}

func inceptionV3Aux(g *graph.Graph, s graph.Sizes) {
	g.Photo(3, s)
	x, side := inceptionV3(g)
	g.Classify(g.Linear("fc", x, s.Classes, true))
	defer g.Module("AuxLogits")()
	x = g.AvgPool("avgpool", side, graph.Window{Kernel: 5, Stride: 3})
	x = basic(g, "conv1", basic(g, "conv0", x, graph.W1(128)), graph.Window{Out: 768, Kernel: 5})
	x = g.Flatten(g.Mean("mean", x))
	g.Classify(g.Linear("fc", x, s.Classes, true))
}

func averaged(g *graph.Graph, in int, out int64) int {
	return basic(g, "branch_pool", g.AvgPool("avgpool", in, graph.Window{Kernel: 3, Pad: 1}), graph.W1(out))
}

func inceptionA(g *graph.Graph, name string, in int, pooled int64) int {
	defer g.StartBlock(name)()
	a := branch(g, "branch1x1", in, graph.W1(64))
	b := branch(g, "branch5x5", in, graph.W1(48), graph.Window{Out: 64, Kernel: 5, Pad: 2})
	c := branch(g, "branch3x3dbl", in, graph.W1(64), graph.W3(96), graph.W3(96))
	return g.Concat("concat", a, b, c, averaged(g, in, pooled))
}

func inceptionB(g *graph.Graph, name string, in int) int {
	defer g.StartBlock(name)()
	a := branch(g, "branch3x3", in, shrink(384))
	b := branch(g, "branch3x3dbl", in, graph.W1(64), graph.W3(96), shrink(96))
	return g.Concat("concat", a, b, g.MaxPool("maxpool", in, shrink(0)))
}

func inceptionC(g *graph.Graph, name string, in int, narrow int64) int {
	defer g.StartBlock(name)()
	a := branch(g, "branch1x1", in, graph.W1(192))
	b := branch(g, "branch7x7", in, graph.W1(narrow), across(narrow, 7), down(192, 7))
	c := branch(g, "branch7x7dbl", in, graph.W1(narrow), down(narrow, 7), across(narrow, 7), down(narrow, 7), across(192, 7))
	return g.Concat("concat", a, b, c, averaged(g, in, 192))
}

func inceptionD(g *graph.Graph, name string, in int) int {
	defer g.StartBlock(name)()
	a := branch(g, "branch3x3", in, graph.W1(192), shrink(320))
	b := branch(g, "branch7x7x3", in, graph.W1(192), across(192, 7), down(192, 7), shrink(192))
	return g.Concat("concat", a, b, g.MaxPool("maxpool", in, shrink(0)))
}

func inceptionE(g *graph.Graph, name string, in int) int {
	defer g.StartBlock(name)()
	a := branch(g, "branch1x1", in, graph.W1(320))
	b := branch(g, "branch3x3", in, graph.W1(384))
	b = g.Concat("concat3x3", basic(g, "branch3x3_2a", b, across(384, 3)), basic(g, "branch3x3_2b", b, down(384, 3)))
	c := branch(g, "branch3x3dbl", in, graph.W1(448), graph.W3(384))
	c = g.Concat("concat3x3dbl", basic(g, "branch3x3dbl_3a", c, across(384, 3)),
		basic(g, "branch3x3dbl_3b", c, down(384, 3)))
	return g.Concat("concat", a, b, c, averaged(g, in, 192))
}

func xception(g *graph.Graph) int {
	x := basic(g, "conv1", graph.Data, shrink(32))
	x = basic(g, "conv2", x, graph.Window{Out: 64, Kernel: 3})
	number := 0
	for _, b := range []struct {
		outs    []int64
		shrinks bool
		repeats int
	}{
		{[]int64{128, 128}, true, 1},
		{[]int64{256, 256}, true, 1},
		{[]int64{728, 728}, true, 1},
		{[]int64{728, 728, 728}, false, 8},
		{[]int64{728, 1024}, true, 1},
	} {
		for range b.repeats {
			number++
			x = xceptionBlock(g, number, x, b.outs, b.shrinks)
		}
	}
	for i, out := range []int64{1536, 2048} {
		x = g.BatchNorm(fmt.Sprintf("bn%d", i+3), separable(g, fmt.Sprintf("conv%d", i+3), x, out))
		x = g.InPlace(models.ReLU, fmt.Sprintf("act%d", i+3), x)
	}
	return g.Flatten(g.Mean("global_pool", x))
}

func separable(g *graph.Graph, name string, in int, out int64) int {
	from := g.Shape(in)[0]
	x := g.Conv(name+".conv1", in, graph.Window{Out: from, Kernel: 3, Pad: 1, Groups: from})
	return g.Conv(name+".pointwise", x, graph.W1(out))
}

func xceptionBlock(g *graph.Graph, number, in int, outs []int64, shrinks bool) int {
	defer g.StartBlock(fmt.Sprintf("block%d", number))()
	x := in
	for i, out := range outs {
		switch {
		case i > 0:
			x = g.InPlace(models.ReLU, fmt.Sprintf("rep.relu%d", i+1), x)
		case number > 1: // the shortcut also needs the block's input, so this is not in place
			x = g.Unary(models.ReLU, "rep.relu1", x)
		}
		x = separable(g, fmt.Sprintf("rep.conv%d", i+1), x, out)
		x = g.BatchNorm(fmt.Sprintf("rep.bn%d", i+1), x)
	}
	skip := in
	if shrinks {
		x = g.MaxPool("rep.maxpool", x, graph.Window{Kernel: 3, Stride: 2, Pad: 1})
		skip = g.ConvNorm("skip", "skipbn", in, graph.Window{Out: outs[len(outs)-1], Stride: 2})
	}
	return g.PlusInPlace("add", x, skip)
}
