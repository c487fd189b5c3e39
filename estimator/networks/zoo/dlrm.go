package zoo

import (
	"fmt"

	"carma/configs/models"
	"carma/estimator/networks/graph"
)

// recommenders returns the deep learning recommendation model of Naumov et al. 2019. Its
// layer sizes and its three small tables come from the measured run.
func recommenders() graph.Group {
	return graph.Group{Name: "dlrm", Description: "recommendation from numbers and categories (DLRM)", Entries: []graph.Network{{
		Name: "dlrm", Kind: models.Recommender, Batch: 32768, Size: graph.Sizes{}, Build: dlrm,
	}}}
}

func dlrm(g *graph.Graph, _ graph.Sizes) {
	const width = 64
	tables := []int64{4, 3, 2}
	g.Input(0, 13)
	g.Input(0, 1)
	x := perceptron(g, "bot_l", graph.Data, []int64{512, 256, 128, width})
	x = g.Unary(models.ReLU, "bot_l.relu", x)
	features := []int{x}
	for i, rows := range tables {
		g.Input(8, 2) // inputs of a table: an index and an offset
		features = append(features, g.Add(models.Layer{
			Name: fmt.Sprintf("emb_l.%d", i), Type: models.EmbeddingBag, Inputs: []int{-len(g.Inputs)},
			Out: []int64{width}, Params: []int64{rows * width},
		}))
	}
	// These are the dot products of all pairs: the lower triangle of the matrix.
	n := int64(len(features))
	t := g.View("interact.view", g.Concat("interact.concat", features...), n, width)
	z := g.Op(models.MatMul, "interact.bmm", []int64{n, n}, t, t)
	pairs := g.Keeping(g.Op(models.OtherLayer, "interact.index", []int64{n * (n - 1) / 2}, z), models.Keeps{})
	x = perceptron(g, "top_l", g.Concat("interact.join", x, pairs), []int64{1024, 512, 256, 1})
	g.Loss("loss", g.Unary(models.Sigmoid, "top_l.sigmoid", x), graph.Second)
}

// perceptron adds linear layers with ReLU after each.
func perceptron(g *graph.Graph, name string, in int, sizes []int64) int {
	for i, n := range sizes {
		if i > 0 {
			in = g.Unary(models.ReLU, fmt.Sprintf("%s.relu%d", name, i), in)
		}
		in = g.Linear(fmt.Sprintf("%s.%d", name, i), in, n, true)
	}
	return in
}
