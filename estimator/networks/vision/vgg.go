package vision

import (
	"fmt"

	"carma/configs/models"
	"carma/estimator/networks/graph"
)

// VGGs returns the networks of Simonyan and Zisserman 2015, without batch norm.
func VGGs() graph.Group {
	return graph.Group{Name: "vgg", Description: "plain deep convolutions (VGG)", Entries: []graph.Network{
		graph.Classifier("vgg11", "classifier.6", vgg(1, 1, 2, 2, 2)),
		graph.Classifier("vgg13", "classifier.6", vgg(2, 2, 2, 2, 2)),
		graph.Classifier("vgg16", "classifier.6", vgg(2, 2, 3, 3, 3)).Called("vgg"),
		graph.Classifier("vgg19", "classifier.6", vgg(2, 2, 4, 4, 4)),
	}}
}

func vgg(repeats ...int) func(*graph.Graph) int {
	return func(g *graph.Graph) int {
		x, module := graph.Data, 0
		name := func() string {
			module++
			return fmt.Sprintf("features.%d", module-1)
		}
		for i, n := range repeats {
			leave := g.StartBlock("")
			for range n {
				x = g.Conv(name(), x, graph.Window{Out: min(int64(64)<<i, 512), Kernel: 3, Pad: 1, Bias: true})
				x = g.InPlace(models.ReLU, name(), x)
			}
			x = g.MaxPool(name(), x, graph.Window{Kernel: 2, Stride: 2})
			leave()
		}
		x = g.Flatten(adaptive(g, "avgpool", x, 7))
		for i := range 2 {
			x = g.Linear(fmt.Sprintf("classifier.%d", 3*i), x, 4096, true)
			x = g.InPlace(models.ReLU, fmt.Sprintf("classifier.%d", 3*i+1), x)
			x = g.Drop(fmt.Sprintf("classifier.%d", 3*i+2), x)
		}
		return x
	}
}

// adaptive pools to size x size pixels. It repeats pixels of smaller images.
func adaptive(g *graph.Graph, name string, in int, size int64) int {
	s := g.Shape(in)
	return g.Add(models.Layer{
		Name: name, Type: models.AvgPool, Inputs: []int{in}, Out: []int64{s[0], size, size},
		Kernel: []int64{max(s[1]/size, 1), max(s[2]/size, 1)}, Stride: max(s[1]/size, 1),
	})
}
