package zoo

import (
	"fmt"

	"carma/configs/models"
)

// recommenders has the deep learning recommendation model of Naumov et al. 2019.
// Its layer sizes and its three small tables are those of the measured run.
func recommenders() group {
	return group{name: "dlrm", description: "recommendation from numbers and categories (DLRM)", entries: []entry{{
		name: "dlrm", kind: models.Recommender, batch: 32768, size: settings{}, build: dlrm,
	}}}
}

func dlrm(g *graph, _ settings) {
	const width = 64
	tables := []int64{4, 3, 2}
	g.input(0, 13)
	g.input(0, 1)
	x := g.perceptron("bot_l", data, []int64{512, 256, 128, width})
	x = g.unary(models.ReLU, "bot_l.relu", x)
	features := []int{x}
	for i, rows := range tables {
		g.input(8, 2) // inputs of a table: an index and an offset
		features = append(features, g.add(models.Layer{
			Name: fmt.Sprintf("emb_l.%d", i), Type: models.EmbeddingBag, Inputs: []int{-len(g.inputs)},
			Out: []int64{width}, Params: []int64{rows * width},
		}))
	}
	// These are the dot products of all pairs: the lower triangle of the matrix.
	n := int64(len(features))
	t := g.view("interact.view", g.concat("interact.concat", features...), n, width)
	z := g.op(models.MatMul, "interact.bmm", []int64{n, n}, t, t)
	pairs := g.keeping(g.op(models.OtherLayer, "interact.index", []int64{n * (n - 1) / 2}, z), models.Keeps{})
	x = g.perceptron("top_l", g.concat("interact.join", x, pairs), []int64{1024, 512, 256, 1})
	g.loss("loss", g.unary(models.Sigmoid, "top_l.sigmoid", x), second)
}

// perceptron adds linear layers with ReLU after each.
func (g *graph) perceptron(name string, in int, sizes []int64) int {
	for i, n := range sizes {
		if i > 0 {
			in = g.unary(models.ReLU, fmt.Sprintf("%s.relu%d", name, i), in)
		}
		in = g.linear(fmt.Sprintf("%s.%d", name, i), in, n, true)
	}
	return in
}
