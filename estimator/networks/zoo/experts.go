package zoo

import "carma/configs/models"

// Experts are feed-forward parts of which each token takes some (mixture of experts).
type Experts struct {
	Number, Active int64
	Inner          int64 // width of each
	First          int64 // blocks before this one have one dense part
	SharedInner    int64 // width of the part that all tokens take; 0: none
	SharedGate     bool  // its output is weighed by the token
	Biased         bool  // all products have biases, and gates are cut off (gpt-oss)
	Bias           int64 // numbers of the router beside its matrix
}

// experts adds the router and the experts. Tokens are sorted by expert, so one layer
// with the weights of all stands for them, over as many rows as tokens take experts.
// The weights of all are one tensor, as in transformers 5.
func (d *Block) experts(g *graph, x int) int {
	e := d.Experts
	tokens := g.shape(x)[0]
	router := g.linear("gate", x, e.Number, e.Biased)
	if e.Bias > 0 && g.rank == 0 {
		g.layers[router].Params = append(g.layers[router].Params, e.Bias)
	}
	weights := g.unary(models.Softmax, "softmax", router)
	rows := g.copyOf("chosen", x, tokens*e.Active, d.Width)
	both := g.perExpert("experts.gate_up_proj", rows, 2*e.Inner, e)
	gate, up := g.view("experts.gate", both, tokens*e.Active, e.Inner), g.view("experts.up", both, tokens*e.Active, e.Inner)
	if e.Biased {
		gate, up = g.cutOff("experts.gate.clamp", gate), g.unary(models.Add, "experts.up.one", g.cutOff("experts.up.clamp", up))
	}
	y := g.times("experts.mul", d.activation(g, gate), up)
	y = g.perExpert("experts.down_proj", y, d.Width, e)
	y = g.op(models.Mul, "weigh", g.shape(y), y, g.copyOf("weights", weights, tokens*e.Active, 1))
	out := g.copyOf("sum", y, tokens, d.Width)
	if e.SharedInner == 0 {
		return out
	}
	defer g.module("shared_expert")()
	shared := d.dense(g, x, e.SharedInner)
	if e.SharedGate {
		gate := g.unary(models.Sigmoid, "sigmoid", g.linear("shared_expert_gate", x, 1, false))
		shared = g.op(models.Mul, "gated", g.shape(shared), shared, gate)
	}
	return g.plus("add", out, shared)
}

// perExpert is a linear layer with a matrix for each expert.
func (g *graph) perExpert(name string, in int, out int64, e *Experts) int {
	i := g.plain(name, in, out, e.Biased)
	for k := range g.layers[i].Params {
		g.layers[i].Params[k] *= e.Number
	}
	return i
}

// cutOff bounds numbers, which keeps its input.
func (g *graph) cutOff(name string, in int) int {
	return g.keeping(g.unary(models.OtherLayer, name, in), models.Keeps{Inputs: []int{0}})
}
