package transformer

import (
	"carma/configs/models"
	"carma/estimator/networks/graph"
)

// Experts is a mixture of experts: each token uses some of the feed-forward parts.
type Experts struct {
	Number, Active int64
	Inner          int64 // width of each expert
	First          int64 // number of first blocks with one dense part
	SharedInner    int64 // width of the part that all tokens use, or 0
	SharedGate     bool  // a gate computed from the token scales that part's output
	Biased         bool  // all products have biases, and gates are clamped (gpt-oss)
	Bias           int64 // number of the router's parameters in addition to its matrix
}

// experts adds the router and the experts. Tokens are sorted by expert. So one layer with
// the weights of all experts represents them, with one row for each token and expert that
// it uses. As in transformers 5, the weights of all are one tensor.
func (d *Block) experts(g *graph.Graph, x int) int {
	e := d.Experts
	tokens := g.Shape(x)[0]
	router := g.Linear("gate", x, e.Number, e.Biased)
	if e.Bias > 0 && g.Rank == 0 {
		g.Layers[router].Params = append(g.Layers[router].Params, e.Bias)
	}
	weights := g.Unary(models.Softmax, "softmax", router)
	rows := g.CopyOf("chosen", x, tokens*e.Active, d.Width)
	both := perExpert(g, "experts.gate_up_proj", rows, 2*e.Inner, e)
	gate, up := g.View("experts.gate", both, tokens*e.Active, e.Inner), g.View("experts.up", both, tokens*e.Active, e.Inner)
	if e.Biased {
		gate, up = cutOff(g, "experts.gate.clamp", gate), g.Unary(models.Add, "experts.up.one", cutOff(g, "experts.up.clamp", up))
	}
	y := g.Times("experts.mul", d.activation(g, gate), up)
	y = perExpert(g, "experts.down_proj", y, d.Width, e)
	y = g.Op(models.Mul, "weigh", g.Shape(y), y, g.CopyOf("weights", weights, tokens*e.Active, 1))
	out := g.CopyOf("sum", y, tokens, d.Width)
	if e.SharedInner == 0 {
		return out
	}
	defer g.Module("shared_expert")()
	shared := d.dense(g, x, e.SharedInner)
	if e.SharedGate {
		gate := g.Unary(models.Sigmoid, "sigmoid", g.Linear("shared_expert_gate", x, 1, false))
		shared = g.Op(models.Mul, "gated", g.Shape(shared), shared, gate)
	}
	return g.Plus("add", out, shared)
}

// perExpert adds a linear layer with a matrix for each expert.
func perExpert(g *graph.Graph, name string, in int, out int64, e *Experts) int {
	i := g.Plain(name, in, out, e.Biased)
	for k := range g.Layers[i].Params {
		g.Layers[i].Params[k] *= e.Number
	}
	return i
}

// cutOff clamps numbers, and keeps its input.
func cutOff(g *graph.Graph, name string, in int) int {
	return g.Keeping(g.Unary(models.OtherLayer, name, in), models.Keeps{Inputs: []int{0}})
}
