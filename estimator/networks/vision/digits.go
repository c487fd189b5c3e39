package vision

import (
	"fmt"

	"carma/configs/models"
	"carma/estimator/networks/graph"
)

// Digits returns small networks for MNIST: the convolutional network of PyTorch's
// example, and fully connected networks.
func Digits() graph.Group {
	c := graph.Group{Name: "mnist", Description: "small networks for MNIST; also mlp_NxD: D hidden layers of N neurons"}
	c.Entries = append(c.Entries, graph.Network{
		Name: "mnist_cnn", Aliases: []string{"mnist"}, Kind: models.Conv, Batch: 64,
		Size: graph.Sizes{Image: 28, Classes: 10}, Build: mnistCNN,
	})
	for _, size := range [][2]int64{{128, 2}, {512, 2}, {1024, 3}, {2048, 4}, {4096, 5}} {
		c.Entries = append(c.Entries, MLP(size[0], size[1]))
	}
	return c
}

func mnistCNN(g *graph.Graph, s graph.Sizes) {
	g.Photo(1, s)
	x := g.Unary(models.ReLU, "relu1", g.Conv("conv1", graph.Data, graph.Window{Out: 32, Kernel: 3, Bias: true}))
	x = g.Unary(models.ReLU, "relu2", g.Conv("conv2", x, graph.Window{Out: 64, Kernel: 3, Bias: true}))
	x = g.Flatten(g.Drop("dropout1", g.MaxPool("pool", x, graph.Window{Kernel: 2, Stride: 2})))
	x = g.Unary(models.ReLU, "relu3", g.Linear("fc1", x, 128, true))
	g.Classify(g.Linear("fc2", g.Drop("dropout2", x), s.Classes, true))
}

// MLP returns a fully connected network with depth hidden layers, each with this number
// of neurons.
func MLP(neurons, depth int64) graph.Network {
	name := fmt.Sprintf("mlp_%dx%d", neurons, depth)
	return graph.Network{
		Name: name, Aliases: []string{"mnist_" + name}, Kind: models.MLP, Batch: 64,
		Size: graph.Sizes{Image: 28, Classes: 10},
		Build: func(g *graph.Graph, s graph.Sizes) {
			g.Photo(1, s)
			x := g.Flatten(graph.Data)
			for i := range depth {
				x = g.Linear(fmt.Sprintf("fc%d", i+1), x, neurons, true)
				x = g.Unary(models.ReLU, fmt.Sprintf("relu%d", i+1), x)
			}
			g.Classify(g.Linear(fmt.Sprintf("fc%d", depth+1), x, s.Classes, true))
		},
	}
}
