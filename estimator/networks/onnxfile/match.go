package onnxfile

import (
	"slices"

	"carma/configs/models"
)

// maxPattern is the most operators of one pattern.
const maxPattern = 24

// match finds groups of operators that exporters make of one layer. The last
// operator of a group makes the layer; the others are done.
func (b *builder) match() {
	b.fused = map[int32]maker{}
	for i := range b.calls {
		c := &b.calls[i]
		if c.told || c.done || !b.anyBatched(c) {
			continue
		}
		switch c.op {
		case "Sigmoid", "HardSigmoid", "Erf", "Tanh":
			b.matchGate(c)
		case "Sqrt":
			b.matchNorm(c)
		case "InstanceNormalization":
			b.matchGroupNorm(c)
		case "Softmax":
			b.matchAttention(c)
		}
	}
}

// maker is the operator that makes a value; nil: the file gives it.
func (n *network) maker(id int32) *call {
	if id < 0 || n.values[id].from < 0 {
		return nil
	}
	return &n.calls[n.values[id].from]
}

// back follows a value backwards through these operators, each with one input and
// a constant.
func (n *network) back(id int32, ops ...string) int32 {
	for range maxPattern {
		c := n.maker(id)
		if c == nil || c.told || !slices.Contains(ops, c.op) {
			return id
		}
		from := n.single(c)
		if from < 0 {
			return id
		}
		id = from
	}
	return id
}

// single is the only input of c that depends on the model's inputs or on weights;
// -1: there are several.
func (n *network) single(c *call) int32 {
	found := int32(-1)
	for _, id := range c.data() {
		if id >= 0 && (n.values[id].batched || len(n.values[id].weights) > 0) {
			if found >= 0 && found != id {
				return -1
			}
			found = id
		}
	}
	return found
}

// region collects the operators between a value and the operator end. The output
// of end may depend only on that value and on constants. learned: it may depend
// on weights too; they are returned in order. Not ok: an operator outside uses a
// value of the region, or it was matched before.
func (b *builder) region(end *call, root int32, learned bool) (calls []*call, weights []int32, ok bool) {
	calls = []*call{end}
	for at := 0; at < len(calls); at++ {
		for _, id := range calls[at].data() {
			if id < 0 || id == root {
				continue
			}
			v := &b.values[id]
			from := b.maker(id)
			switch {
			case !v.batched && len(v.weights) == 0:
			case !v.batched:
				weights = append(weights, id)
			case from == nil || len(calls) > maxPattern || from.done || from.told:
				return nil, nil, false
			case !slices.Contains(calls, from):
				calls = append(calls, from)
			}
		}
	}
	for _, c := range calls[1:] {
		if len(c.out) != 1 && c.op != "InstanceNormalization" || b.values[c.out[0]].output || len(b.values[c.out[0]].uses) > maxUses {
			return nil, nil, false
		}
		for _, use := range b.values[c.out[0]].uses {
			u := &b.calls[use]
			if !slices.Contains(calls, u) && b.anyBatched(u) && slices.Contains(u.data(), c.out[0]) {
				return nil, nil, false
			}
		}
	}
	slices.Reverse(weights)
	return calls, weights, learned || len(weights) == 0
}

// fuse makes one layer of some operators, at the place of their last one,
// calls[0].
func (b *builder) fuse(calls []*call, m maker) {
	for _, c := range calls {
		c.done = true
	}
	end := calls[0]
	end.done = false
	b.fused[b.values[end.out[0]].from] = m
}

// one returns a maker of a layer with one input.
func one(kind string, root int32, weights []int32) maker {
	return func(b *builder, c *call) {
		l := models.Layer{Type: kind, Inputs: b.sources([]int32{root})}
		b.params(&l, weights...)
		b.add(c, 0, l)
	}
}

// matchGate finds x * sigmoid(x) and similar activations: SiLU, hard swish, Mish,
// and GELU by the error function or by the hyperbolic tangent.
func (b *builder) matchGate(c *call) {
	root, kind := c.in[0], ""
	switch c.op {
	case "Sigmoid":
		root, kind = b.back(c.in[0], "Mul", "Cast", "CastLike"), models.SiLU
		if root != c.in[0] {
			kind = models.GELU // x * sigmoid(1.702 x)
		}
	case "HardSigmoid":
		kind = models.HardSwish
	case "Erf":
		root, kind = b.back(c.in[0], "Mul", "Div", "Cast", "CastLike"), models.GELU
	case "Tanh":
		from := b.maker(c.in[0])
		if from != nil && from.op == "Softplus" {
			root, kind = from.in[0], models.Mish
		} else {
			root, kind = b.cubic(c.in[0]), models.GELU
		}
	}
	if root < 0 {
		return
	}
	var best []*call
	for end, steps := b.next(c), 0; end != nil && steps < 6; end, steps = b.next(end), steps+1 {
		if end.op != "Mul" && end.op != "Add" && end.op != "Cast" && end.op != "CastLike" && end.op != "Div" {
			break
		}
		calls, _, ok := b.region(end, root, false)
		if ok && !gateOnly(calls) {
			break
		}
		if ok && end.op != "Add" && slices.ContainsFunc(calls, func(c *call) bool { return c.op == "Mul" && b.gates(c) }) {
			best = calls
		} else if best != nil {
			break
		}
	}
	if best != nil {
		b.fuse(best, one(kind, root, nil))
	}
}

// gateOnly reports whether there are only sums, products and one activation.
func gateOnly(calls []*call) bool {
	curves := 0
	for _, c := range calls {
		switch c.op {
		case "Mul", "Div", "Add", "Pow", "Cast", "CastLike", "Softplus":
		case "Sigmoid", "HardSigmoid", "Erf", "Tanh":
			curves++
		default:
			return false
		}
	}
	return curves == 1
}

// gates reports whether c is a product of two values that depend on the input.
func (b *builder) gates(c *call) bool {
	return len(c.in) == 2 && c.in[0] >= 0 && c.in[1] >= 0 && b.values[c.in[0]].batched && b.values[c.in[1]].batched
}

// cubic returns x if id is 0.8 * (x + 0.04 * x^3), else -1.
func (b *builder) cubic(id int32) int32 {
	add := b.maker(b.back(id, "Mul", "Cast", "CastLike"))
	if add == nil || add.op != "Add" || len(add.in) != 2 {
		return -1
	}
	for i, x := range add.in {
		if other := b.maker(add.in[1-i]); x >= 0 && other != nil && other.op == "Mul" && b.maker(x) != other {
			if _, _, ok := b.region(add, x, false); ok {
				return x
			}
		}
	}
	return -1
}

// matchNorm finds a layer norm or RMS norm that is written out, from its square
// root.
func (b *builder) matchNorm(c *call) {
	mean := b.maker(b.back(c.in[0], "Add", "Cast", "CastLike"))
	if mean == nil || mean.op != "ReduceMean" || len(mean.in) < 1 {
		return
	}
	square := b.maker(b.back(mean.in[0], "Cast", "CastLike"))
	if square == nil || len(square.in) != 2 || square.op != "Pow" && !(square.op == "Mul" && square.in[0] == square.in[1]) {
		return
	}
	root, kind := square.in[0], models.RMSNorm
	if sub := b.maker(b.back(root, "Cast", "CastLike")); sub != nil && sub.op == "Sub" && len(sub.in) == 2 {
		if of := b.maker(sub.in[1]); of != nil && of.op == "ReduceMean" && of.in[0] == sub.in[0] {
			root, kind = sub.in[0], models.LayerNorm
		}
	}
	if root < 0 {
		return
	}
	root = b.back(root, "Cast", "CastLike")
	var best []*call
	var learned []int32
	for end, steps := b.next(c), 0; end != nil && steps < 6; end, steps = b.next(end), steps+1 {
		if !slices.Contains([]string{"Div", "Mul", "Add", "Reciprocal", "Cast", "CastLike"}, end.op) {
			break
		}
		if calls, weights, ok := b.region(end, root, true); ok && len(weights) <= 2 {
			best, learned = calls, weights
		}
	}
	if best != nil {
		b.norms++
		b.fuse(best, one(kind, root, learned))
	}
}

// matchGroupNorm finds an instance norm between two reshapes, and the weights
// after it.
func (b *builder) matchGroupNorm(c *call) {
	from := b.maker(c.in[0])
	if from == nil || from.op != "Reshape" {
		return
	}
	var best []*call
	var learned []int32
	for end, steps := b.next(c), 0; end != nil && steps < 3; end, steps = b.next(end), steps+1 {
		if !slices.Contains([]string{"Reshape", "Mul", "Add"}, end.op) {
			break
		}
		calls, weights, ok := b.region(end, from.in[0], true)
		// The instance norm's own weights are ones and zeros.
		weights = slices.DeleteFunc(weights, func(id int32) bool { return slices.Contains(c.in[1:], id) })
		if ok && len(weights) <= 2 {
			best, learned = calls, weights
		}
	}
	if best != nil {
		b.norms++
		b.fuse(best, one(models.GroupNorm, from.in[0], learned))
	}
}
