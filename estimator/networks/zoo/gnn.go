package zoo

import (
	"fmt"
	"slices"

	"carma/configs/models"
	"carma/estimator/networks/graph"
)

// gnn is a network on one whole graph, as in torch_geometric.nn.models (2.8.1), with
// edges as pairs of nodes. Between layers are ReLU and dropout.
type gnn struct {
	nodes, edges, features, hidden, layers, classes, heads int64
}

// graphNetworks returns networks on graphs: GCN (Kipf and Welling 2017), GraphSAGE
// (Hamilton et al. 2017) and GAT (Velickovic et al. 2018). The default sizes come from
// OGB's examples on ogbn-arxiv.
func graphNetworks() graph.Group {
	c := graph.Group{Name: "graph", Description: "networks on one whole graph (GCN, GraphSAGE, GAT)"}
	for _, n := range []struct {
		name  string
		layer func(n *gnn, g *graph.Graph, x int, out int64, last bool) int
		heads int64
	}{{"gcn", (*gnn).gcn, 0}, {"graphsage", (*gnn).sage, 0}, {"gat", (*gnn).gat, 4}} {
		build := func(size gnn) func(*graph.Graph, graph.Sizes) {
			return func(g *graph.Graph, s graph.Sizes) {
				size := size
				size.classes = s.Classes
				size.build(g, n.layer)
			}
		}
		size := gnn{nodes: 169343, edges: 1166243, features: 128, hidden: 256, layers: 3, classes: 40, heads: n.heads}
		c.Entries = append(c.Entries, graph.Network{
			Name: n.name, Kind: models.Other, Batch: 1, Size: graph.Sizes{Classes: size.classes},
			Build: build(size),
			With: func(e *graph.Network, values map[string]int64) {
				size := size
				take(values, map[string]*int64{
					"nodes": &size.nodes, "edges": &size.edges, "features": &size.features, "hidden": &size.hidden, "layers": &size.layers, "classes": &size.classes, "heads": &size.heads,
				})
				e.Size.Classes, e.Build = size.classes, build(size)
			},
			Values: gnnValues(n.heads > 0),
		})
	}
	return c
}

// gnnValues returns the sizes that a name can set, with their limits.
func gnnValues(heads bool) map[string]int64 {
	v := map[string]int64{"nodes": 1 << 34, "edges": 1 << 36, "features": 1 << 24, "hidden": 1 << 20, "layers": 1000, "classes": 1 << 24}
	if heads {
		v["heads"] = 1 << 10
	}
	return v
}

func (n *gnn) build(g *graph.Graph, layer func(n *gnn, g *graph.Graph, x int, out int64, last bool) int) {
	if n.heads > 0 && (n.hidden%n.heads != 0 || n.classes < 1) {
		g.Fail("%d heads do not divide the width %d", n.heads, n.hidden)
		return
	}
	g.Input(4, n.nodes, n.features)
	g.Input(8, n.nodes)
	g.Input(8, 2, n.edges)
	x := graph.Data
	for i := range n.layers {
		leave := g.StartBlock(fmt.Sprintf("convs.%d", i))
		last := i == n.layers-1
		out := n.hidden
		if last {
			out = n.classes
		}
		x = layer(n, g, x, out, last)
		if !last {
			x = g.Drop("dropout", g.Unary(models.ReLU, "act", x))
		}
		leave()
	}
	g.CrossEntropy("loss", x, graph.Second)
}

// edgesInput is the index of the pairs of nodes.
const edgesInput = -3

// gathered adds a row for each edge. Its gradient needs the pairs of nodes.
func gathered(g *graph.Graph, name string, x int, edges, width, indices int64) int {
	return g.Keeping(g.Op(models.OtherLayer, name, []int64{edges, width}, x), models.Keeps{Bytes: indices})
}

// summed adds the sums of the edges' rows at their nodes.
func summed(g *graph.Graph, name string, x int, nodes int64) int {
	return g.Keeping(g.Op(models.OtherLayer, name, []int64{nodes, g.Last(x)}, x), models.Keeps{})
}

// until adds an operation that keeps values alive up to here, like variables of the
// program.
func until(g *graph.Graph, name string, values ...int) {
	g.Keeping(g.Op(models.OtherLayer, name, []int64{1}, values...), models.Keeps{})
}

// gcn normalizes the edges in each step, with a self-loop at each node.
func (n *gnn) gcn(g *graph.Graph, x int, out int64, _ bool) int {
	all := n.edges + n.nodes
	pairs := g.Op(models.OtherLayer, "gcn_norm", []int64{5 * all}, edgesInput) // 16 bytes of nodes and 4 of weight
	g.Layers[pairs].Keeps = &models.Keeps{}
	x = g.Linear("lin", x, out, false)
	y := gathered(g, "index_select", x, all, out, 0)
	z := g.Add(models.Layer{Name: "message", Type: models.Mul, Inputs: []int{y, pairs}, Out: slices.Clone(g.Shape(y)), Keeps: &models.Keeps{Inputs: []int{1}}})
	z = summed(g, "scatter_add", z, n.nodes)
	until(g, "propagate", x, y)
	return shifted(g, "bias", z)
}

// shifted adds a learned vector.
func shifted(g *graph.Graph, name string, x int) int {
	i := g.Unary(models.Add, name, x)
	g.Layers[i].Params = []int64{g.Last(x)}
	return i
}

// sage adds the mean of a node's neighbours, in addition to the node itself.
func (n *gnn) sage(g *graph.Graph, x int, out int64, _ bool) int {
	y := gathered(g, "index_select", x, n.edges, g.Last(x), 0)
	all := y
	y = summed(g, "scatter_add", y, n.nodes)
	until(g, "propagate", x, all)
	y = g.Keeping(g.Unary(models.Mul, "mean", y), models.Keeps{Bytes: 4 * n.nodes})
	return g.Plus("add", g.Linear("lin_l", y, out, true), g.Linear("lin_r", x, out, false))
}

// gat weights each edge by attention, with a self-loop at each node. The messages of all
// edges are kept, because the weights need them.
func (n *gnn) gat(g *graph.Graph, x int, out int64, last bool) int {
	all := n.edges + n.nodes
	heads := n.heads
	pairs := g.Op(models.OtherLayer, "add_self_loops", []int64{4 * all}, edgesInput)
	g.Layers[pairs].Keeps = &models.Keeps{}
	width := out
	if last { // each head has all classes, and their mean is taken
		width *= heads
	}
	x = g.Linear("lin", x, width, false)
	scores := g.Keeping(g.Op(models.OtherLayer, "alpha", []int64{n.nodes, 2 * heads}, x), models.Keeps{Inputs: []int{0}})
	g.Layers[scores].Params = []int64{width, width}
	e := g.Add(models.Layer{Name: "edge", Type: models.OtherLayer, Inputs: []int{scores, pairs}, Out: []int64{all, heads}, Keeps: &models.Keeps{Inputs: []int{1}}})
	e = g.Unary(models.LeakyReLU, "leaky_relu", e)
	// The exponentials, the sums per node and the quotients are kept.
	e = g.Keeping(g.Unary(models.Softmax, "softmax", e), models.Keeps{Bytes: 2 * 4 * all * heads})
	e = g.Drop("dropout_alpha", e)
	y := gathered(g, "index_select", x, all, width, 0)
	z := g.Add(models.Layer{Name: "message", Type: models.Mul, Inputs: []int{y, e}, Out: slices.Clone(g.Shape(y)), Keeps: &models.Keeps{Inputs: []int{0, 1}}})
	z = summed(g, "scatter_add", z, n.nodes)
	until(g, "propagate", x, y)
	if last {
		z = g.Keeping(g.Op(models.OtherLayer, "mean", []int64{n.nodes, out}, z), models.Keeps{})
	}
	return shifted(g, "bias", z)
}
