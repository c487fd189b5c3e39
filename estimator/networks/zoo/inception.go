package zoo

import (
	"fmt"

	"carma/configs/models"
)

// inceptions are those of Szegedy et al. 2016 (Inception v3) and Chollet 2017
// (Xception), for images of 299 pixels.
func inceptions() group {
	of299 := func(e entry) entry {
		e.size.image = 299
		return e
	}
	aux := of299(entry{name: "inception_v3_aux", kind: models.Conv, batch: 32, size: imageNet, build: inceptionV3Aux})
	return group{name: "inception", description: "parallel convolutions (Inception v3, Xception)", entries: []entry{
		of299(classifier("inception_v3", "fc", func(g *graph) int {
			x, _ := g.inceptionV3()
			return x
		})).called("inception"),
		aux,
		of299(classifier("xception", "fc", xception)).called("legacy_xception"),
	}}
}

// basic adds a convolution, its batch norm, and ReLU in place.
func (g *graph) basic(name string, in int, w window) int {
	x := g.convNorm(name+".conv", name+".bn", in, w)
	return g.inPlace(models.ReLU, name+".relu", x)
}

// branch applies basic convolutions one after the other.
func (g *graph) branch(name string, in int, windows ...window) int {
	for i, w := range windows {
		in = g.basic(fmt.Sprintf("%s_%d", name, i+1), in, w)
	}
	return in
}

func w1(out int64) window { return window{out: out} }
func w3(out int64) window { return window{out: out, kernel: 3, pad: 1} }

func w3Biased(out int64) window { return window{out: out, kernel: 3, pad: 1, bias: true} }

// across is a long and narrow kernel, 1 high and n wide.
func across(out, n int64) window { return window{out: out, kernel: 1, width: n, padWidth: n / 2} }
func down(out, n int64) window   { return window{out: out, kernel: n, width: 1, pad: n / 2} }

// shrink halves an image, without padding.
func shrink(out int64) window { return window{out: out, kernel: 3, stride: 2} }

// inceptionV3 is the vector of each photo, and the features that the second classifier
// takes.
func (g *graph) inceptionV3() (vector, side int) {
	x := g.basic("Conv2d_1a_3x3", data, shrink(32))
	x = g.basic("Conv2d_2a_3x3", x, window{out: 32, kernel: 3})
	x = g.basic("Conv2d_2b_3x3", x, w3(64))
	x = g.maxPool("maxpool1", x, shrink(0))
	x = g.basic("Conv2d_3b_1x1", x, w1(80))
	x = g.basic("Conv2d_4a_3x3", x, window{out: 192, kernel: 3})
	x = g.maxPool("maxpool2", x, shrink(0))
	for i, pooled := range []int64{32, 64, 64} {
		x = g.inceptionA(fmt.Sprintf("Mixed_5%c", 'b'+i), x, pooled)
	}
	x = g.inceptionB("Mixed_6a", x)
	for i, narrow := range []int64{128, 160, 160, 192} {
		x = g.inceptionC(fmt.Sprintf("Mixed_6%c", 'b'+i), x, narrow)
	}
	side = x
	x = g.inceptionD("Mixed_7a", x)
	x = g.inceptionE("Mixed_7b", x)
	x = g.inceptionE("Mixed_7c", x)
	return g.flatten(g.drop("dropout", g.mean("avgpool", x))), side
}

func inceptionV3Aux(g *graph, s settings) {
	g.photo(3, s)
	x, side := g.inceptionV3()
	g.classify(g.linear("fc", x, s.classes, true))
	defer g.module("AuxLogits")()
	x = g.avgPool("avgpool", side, window{kernel: 5, stride: 3})
	x = g.basic("conv1", g.basic("conv0", x, w1(128)), window{out: 768, kernel: 5})
	x = g.flatten(g.mean("mean", x))
	g.classify(g.linear("fc", x, s.classes, true))
}

func (g *graph) averaged(in int, out int64) int {
	return g.basic("branch_pool", g.avgPool("avgpool", in, window{kernel: 3, pad: 1}), w1(out))
}

func (g *graph) inceptionA(name string, in int, pooled int64) int {
	defer g.startBlock(name)()
	a := g.branch("branch1x1", in, w1(64))
	b := g.branch("branch5x5", in, w1(48), window{out: 64, kernel: 5, pad: 2})
	c := g.branch("branch3x3dbl", in, w1(64), w3(96), w3(96))
	return g.concat("concat", a, b, c, g.averaged(in, pooled))
}

func (g *graph) inceptionB(name string, in int) int {
	defer g.startBlock(name)()
	a := g.branch("branch3x3", in, shrink(384))
	b := g.branch("branch3x3dbl", in, w1(64), w3(96), shrink(96))
	return g.concat("concat", a, b, g.maxPool("maxpool", in, shrink(0)))
}

func (g *graph) inceptionC(name string, in int, narrow int64) int {
	defer g.startBlock(name)()
	a := g.branch("branch1x1", in, w1(192))
	b := g.branch("branch7x7", in, w1(narrow), across(narrow, 7), down(192, 7))
	c := g.branch("branch7x7dbl", in, w1(narrow), down(narrow, 7), across(narrow, 7), down(narrow, 7), across(192, 7))
	return g.concat("concat", a, b, c, g.averaged(in, 192))
}

func (g *graph) inceptionD(name string, in int) int {
	defer g.startBlock(name)()
	a := g.branch("branch3x3", in, w1(192), shrink(320))
	b := g.branch("branch7x7x3", in, w1(192), across(192, 7), down(192, 7), shrink(192))
	return g.concat("concat", a, b, g.maxPool("maxpool", in, shrink(0)))
}

func (g *graph) inceptionE(name string, in int) int {
	defer g.startBlock(name)()
	a := g.branch("branch1x1", in, w1(320))
	b := g.branch("branch3x3", in, w1(384))
	b = g.concat("concat3x3", g.basic("branch3x3_2a", b, across(384, 3)), g.basic("branch3x3_2b", b, down(384, 3)))
	c := g.branch("branch3x3dbl", in, w1(448), w3(384))
	c = g.concat("concat3x3dbl", g.basic("branch3x3dbl_3a", c, across(384, 3)),
		g.basic("branch3x3dbl_3b", c, down(384, 3)))
	return g.concat("concat", a, b, c, g.averaged(in, 192))
}

func xception(g *graph) int {
	x := g.basic("conv1", data, shrink(32))
	x = g.basic("conv2", x, window{out: 64, kernel: 3})
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
			x = g.xceptionBlock(number, x, b.outs, b.shrinks)
		}
	}
	for i, out := range []int64{1536, 2048} {
		x = g.batchNorm(fmt.Sprintf("bn%d", i+3), g.separable(fmt.Sprintf("conv%d", i+3), x, out))
		x = g.inPlace(models.ReLU, fmt.Sprintf("act%d", i+3), x)
	}
	return g.flatten(g.mean("global_pool", x))
}

func (g *graph) separable(name string, in int, out int64) int {
	from := g.shape(in)[0]
	x := g.conv(name+".conv1", in, window{out: from, kernel: 3, pad: 1, groups: from})
	return g.conv(name+".pointwise", x, w1(out))
}

func (g *graph) xceptionBlock(number, in int, outs []int64, shrinks bool) int {
	defer g.startBlock(fmt.Sprintf("block%d", number))()
	x := in
	for i, out := range outs {
		switch {
		case i > 0:
			x = g.inPlace(models.ReLU, fmt.Sprintf("rep.relu%d", i+1), x)
		case number > 1: // the shortcut needs the block's input too, so not in place
			x = g.unary(models.ReLU, "rep.relu1", x)
		}
		x = g.separable(fmt.Sprintf("rep.conv%d", i+1), x, out)
		x = g.batchNorm(fmt.Sprintf("rep.bn%d", i+1), x)
	}
	skip := in
	if shrinks {
		x = g.maxPool("rep.maxpool", x, window{kernel: 3, stride: 2, pad: 1})
		skip = g.convNorm("skip", "skipbn", in, window{out: outs[len(outs)-1], stride: 2})
	}
	return g.plusInPlace("add", x, skip)
}
