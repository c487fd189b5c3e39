package zoo

import (
	"fmt"

	"carma/configs/models"
)

// vggs are of Simonyan and Zisserman 2015, without batch norm.
func vggs() group {
	return group{name: "vgg", description: "plain deep convolutions (VGG)", entries: []entry{
		classifier("vgg11", "classifier.6", vgg(1, 1, 2, 2, 2)),
		classifier("vgg13", "classifier.6", vgg(2, 2, 2, 2, 2)),
		classifier("vgg16", "classifier.6", vgg(2, 2, 3, 3, 3)).called("vgg"),
		classifier("vgg19", "classifier.6", vgg(2, 2, 4, 4, 4)),
	}}
}

func vgg(repeats ...int) func(*graph) int {
	return func(g *graph) int {
		x, module := data, 0
		name := func() string {
			module++
			return fmt.Sprintf("features.%d", module-1)
		}
		for i, n := range repeats {
			leave := g.startBlock("")
			for range n {
				x = g.conv(name(), x, window{out: min(int64(64)<<i, 512), kernel: 3, pad: 1, bias: true})
				x = g.inPlace(models.ReLU, name(), x)
			}
			x = g.maxPool(name(), x, window{kernel: 2, stride: 2})
			leave()
		}
		x = g.flatten(g.adaptive("avgpool", x, 7))
		for i := range 2 {
			x = g.linear(fmt.Sprintf("classifier.%d", 3*i), x, 4096, true)
			x = g.inPlace(models.ReLU, fmt.Sprintf("classifier.%d", 3*i+1), x)
			x = g.drop(fmt.Sprintf("classifier.%d", 3*i+2), x)
		}
		return x
	}
}
