package zoo

import (
	"fmt"
	"slices"

	"carma/configs/models"
)

// gnn is a network on one whole graph, as torch_geometric.nn.models has them (2.8.1),
// with edges as pairs of nodes. Between layers are ReLU and dropout.
type gnn struct {
	nodes, edges, features, hidden, layers, classes, heads int64
}

// graphNetworks are networks on graphs: GCN (Kipf and Welling 2017), GraphSAGE
// (Hamilton et al. 2017) and GAT (Velickovic et al. 2018). By default they are those
// of OGB's examples on ogbn-arxiv.
func graphNetworks() group {
	c := group{name: "graph", description: "networks on one whole graph (GCN, GraphSAGE, GAT)"}
	for _, n := range []struct {
		name  string
		layer func(n *gnn, g *graph, x int, out int64, last bool) int
		heads int64
	}{{"gcn", (*gnn).gcn, 0}, {"graphsage", (*gnn).sage, 0}, {"gat", (*gnn).gat, 4}} {
		n := n
		size := gnn{nodes: 169343, edges: 1166243, features: 128, hidden: 256, layers: 3, classes: 40, heads: n.heads}
		c.entries = append(c.entries, entry{
			name: n.name, kind: models.Other, batch: 1, size: settings{classes: size.classes},
			build: func(g *graph, s settings) {
				size := size
				size.classes = s.classes
				size.build(g, n.layer)
			},
			with: func(e *entry, values map[string]int64) {
				size := size
				size.take(values)
				e.size.classes = size.classes
				e.build = func(g *graph, s settings) {
					size.classes = s.classes
					size.build(g, n.layer)
				}
			},
			values: gnnValues(n.heads > 0),
		})
	}
	return c
}

// gnnValues are the sizes that a name can give, with their limits.
func gnnValues(heads bool) map[string]int64 {
	v := map[string]int64{"nodes": 1 << 34, "edges": 1 << 36, "features": 1 << 24, "hidden": 1 << 20, "layers": 1000, "classes": 1 << 24}
	if heads {
		v["heads"] = 1 << 10
	}
	return v
}

func (n *gnn) take(values map[string]int64) {
	for name, to := range map[string]*int64{
		"nodes": &n.nodes, "edges": &n.edges, "features": &n.features, "hidden": &n.hidden, "layers": &n.layers, "classes": &n.classes, "heads": &n.heads,
	} {
		if v, ok := values[name]; ok {
			*to = v
		}
	}
}

func (n *gnn) build(g *graph, layer func(n *gnn, g *graph, x int, out int64, last bool) int) {
	if n.heads > 0 && (n.hidden%n.heads != 0 || n.classes < 1) {
		g.fail("%d heads do not divide the width %d", n.heads, n.hidden)
		return
	}
	g.input(4, n.nodes, n.features)
	g.input(8, n.nodes)
	g.input(8, 2, n.edges)
	x := data
	for i := range n.layers {
		leave := g.startBlock(fmt.Sprintf("convs.%d", i))
		last := i == n.layers-1
		out := n.hidden
		if last {
			out = n.classes
		}
		x = layer(n, g, x, out, last)
		if !last {
			x = g.drop("dropout", g.unary(models.ReLU, "act", x))
		}
		leave()
	}
	g.crossEntropy("loss", x, second)
}

// edgesInput is the index of the pairs of nodes.
const edgesInput = -3

// gathered has a row for each edge. Its gradient needs the pairs of nodes.
func (g *graph) gathered(name string, x int, edges, width, indices int64) int {
	return g.keeping(g.op(models.OtherLayer, name, []int64{edges, width}, x), models.Keeps{Bytes: indices})
}

// summed adds the rows of the edges up at their nodes.
func (g *graph) summed(name string, x int, nodes int64) int {
	return g.keeping(g.op(models.OtherLayer, name, []int64{nodes, g.last(x)}, x), models.Keeps{})
}

// until says that variables of the program hold values until here.
func (g *graph) until(name string, values ...int) {
	g.keeping(g.op(models.OtherLayer, name, []int64{1}, values...), models.Keeps{})
}

// gcn normalizes the edges in each step, with a self-loop at each node.
func (n *gnn) gcn(g *graph, x int, out int64, _ bool) int {
	all := n.edges + n.nodes
	pairs := g.op(models.OtherLayer, "gcn_norm", []int64{5 * all}, edgesInput) // 16 bytes of nodes and 4 of weight
	g.layers[pairs].Keeps = &models.Keeps{}
	x = g.linear("lin", x, out, false)
	y := g.gathered("index_select", x, all, out, 0)
	z := g.add(models.Layer{Name: "message", Type: models.Mul, Inputs: []int{y, pairs}, Out: slices.Clone(g.shape(y)), Keeps: &models.Keeps{Inputs: []int{1}}})
	z = g.summed("scatter_add", z, n.nodes)
	g.until("propagate", x, y)
	return g.shifted("bias", z)
}

// shifted adds a learned vector.
func (g *graph) shifted(name string, x int) int {
	i := g.unary(models.Add, name, x)
	g.layers[i].Params = []int64{g.last(x)}
	return i
}

// sage is the mean of the neighbours beside the node itself.
func (n *gnn) sage(g *graph, x int, out int64, _ bool) int {
	y := g.gathered("index_select", x, n.edges, g.last(x), 0)
	all := y
	y = g.summed("scatter_add", y, n.nodes)
	g.until("propagate", x, all)
	y = g.keeping(g.unary(models.Mul, "mean", y), models.Keeps{Bytes: 4 * n.nodes})
	return g.plus("add", g.linear("lin_l", y, out, true), g.linear("lin_r", x, out, false))
}

// gat weighs each edge by attention, with a self-loop at each node. The messages of
// all edges are kept, because the weights need them.
func (n *gnn) gat(g *graph, x int, out int64, last bool) int {
	all := n.edges + n.nodes
	heads := n.heads
	pairs := g.op(models.OtherLayer, "add_self_loops", []int64{4 * all}, edgesInput)
	g.layers[pairs].Keeps = &models.Keeps{}
	width := out
	if last { // each head has all classes, and the mean is taken
		width *= heads
	}
	x = g.linear("lin", x, width, false)
	scores := g.keeping(g.op(models.OtherLayer, "alpha", []int64{n.nodes, 2 * heads}, x), models.Keeps{Inputs: []int{0}})
	g.layers[scores].Params = []int64{width, width}
	e := g.add(models.Layer{Name: "edge", Type: models.OtherLayer, Inputs: []int{scores, pairs}, Out: []int64{all, heads}, Keeps: &models.Keeps{Inputs: []int{1}}})
	e = g.unary(models.LeakyReLU, "leaky_relu", e)
	// The exponentials and the sums of each node are kept, and the quotients.
	e = g.keeping(g.unary(models.Softmax, "softmax", e), models.Keeps{Bytes: 2 * 4 * all * heads})
	e = g.drop("dropout_alpha", e)
	y := g.gathered("index_select", x, all, width, 0)
	z := g.add(models.Layer{Name: "message", Type: models.Mul, Inputs: []int{y, e}, Out: slices.Clone(g.shape(y)), Keeps: &models.Keeps{Inputs: []int{0, 1}}})
	z = g.summed("scatter_add", z, n.nodes)
	g.until("propagate", x, y)
	if last {
		z = g.keeping(g.op(models.OtherLayer, "mean", []int64{n.nodes, out}, z), models.Keeps{})
	}
	return g.shifted("bias", z)
}
