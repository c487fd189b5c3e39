package zoo

import (
	"fmt"

	"carma/configs/models"
)

// digits are small networks for MNIST: the convolutional one of PyTorch's
// example, and fully connected networks.
func digits() group {
	c := group{name: "mnist", description: "small networks for MNIST; also mlp_NxD: D hidden layers of N neurons"}
	c.entries = append(c.entries, entry{
		name: "mnist_cnn", aliases: []string{"mnist"}, kind: models.Conv, batch: 64,
		size: settings{image: 28, classes: 10}, build: mnistCNN,
	})
	for _, size := range [][2]int64{{128, 2}, {512, 2}, {1024, 3}, {2048, 4}, {4096, 5}} {
		c.entries = append(c.entries, mlp(size[0], size[1]))
	}
	return c
}

func mnistCNN(g *graph, s settings) {
	g.photo(1, s)
	x := g.unary(models.ReLU, "relu1", g.conv("conv1", data, window{out: 32, kernel: 3, bias: true}))
	x = g.unary(models.ReLU, "relu2", g.conv("conv2", x, window{out: 64, kernel: 3, bias: true}))
	x = g.flatten(g.drop("dropout1", g.maxPool("pool", x, window{kernel: 2, stride: 2})))
	x = g.unary(models.ReLU, "relu3", g.linear("fc1", x, 128, true))
	g.classify(g.linear("fc2", g.drop("dropout2", x), s.classes, true))
}

// mlp is a fully connected network with depth hidden layers of so many neurons.
func mlp(neurons, depth int64) entry {
	name := fmt.Sprintf("mlp_%dx%d", neurons, depth)
	return entry{
		name: name, aliases: []string{"mnist_" + name}, kind: models.MLP, batch: 64,
		size: settings{image: 28, classes: 10},
		build: func(g *graph, s settings) {
			g.photo(1, s)
			x := g.flatten(data)
			for i := range depth {
				x = g.linear(fmt.Sprintf("fc%d", i+1), x, neurons, true)
				x = g.unary(models.ReLU, fmt.Sprintf("relu%d", i+1), x)
			}
			g.classify(g.linear(fmt.Sprintf("fc%d", depth+1), x, s.classes, true))
		},
	}
}
