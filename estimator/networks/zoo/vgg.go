package zoo

import (
	"fmt"

	"carma/configs/models"
)

// vggs are of Simonyan and Zisserman 2015, without batch norm.
func vggs() group {
	c := group{name: "vgg", description: "plain deep convolutions (VGG)"}
	for _, v := range []struct {
		depth   int
		repeats [5]int
	}{
		{11, [5]int{1, 1, 2, 2, 2}},
		{13, [5]int{2, 2, 2, 2, 2}},
		{16, [5]int{2, 2, 3, 3, 3}},
		{19, [5]int{2, 2, 4, 4, 4}},
	} {
		e := entry{
			name: fmt.Sprintf("vgg%d", v.depth), kind: models.Conv, batch: 32, size: imageNet,
			build: func(g *graph, s settings) { g.vgg(v.repeats, s) },
		}
		if v.depth == 16 {
			e.aliases = []string{"vgg"}
		}
		c.entries = append(c.entries, e)
	}
	return c
}

func (g *graph) vgg(repeats [5]int, s settings) {
	g.photo(3, s)
	x, module := data, 0
	name := func() string {
		module++
		return fmt.Sprintf("features.%d", module-1)
	}
	for i, n := range repeats {
		g.blocks++
		g.block = g.blocks
		for range n {
			x = g.conv(name(), x, window{out: min(int64(64)<<i, 512), kernel: 3, pad: 1, bias: true})
			x = g.inPlace(models.ReLU, name(), x)
		}
		x = g.maxPool(name(), x, window{kernel: 2, stride: 2})
	}
	g.block = 0
	x = g.flatten(g.adaptive("avgpool", x, 7))
	for i := range 2 {
		x = g.linear(fmt.Sprintf("classifier.%d", 3*i), x, 4096, true)
		x = g.inPlace(models.ReLU, fmt.Sprintf("classifier.%d", 3*i+1), x)
		x = g.drop(fmt.Sprintf("classifier.%d", 3*i+2), x)
	}
	g.classify(g.linear("classifier.6", x, s.classes, true))
}
