package onnxfile

import "slices"

// sameAsFirst gives every output the shape of the first input. Exceptions are
// statistics and masks that are not used.
func sameAsFirst(n *network, c *call) error {
	if err := n.args(c, 0); err != nil {
		return err
	}
	x := n.arg(c, 0)
	for o := range c.out {
		shape, kind, axis := x.shape, int64(0), x.axis
		switch {
		case c.op == "BatchNormalization" && o > 0:
			if scale := n.arg(c, 1); scale != nil {
				shape, axis = scale.shape, -1
			}
		case c.op == "LayerNormalization" && o > 0: // these are mean and deviation
			shape = slices.Clone(shape)
			at, err := n.axisOf(c, c.num("axis", -1), len(shape))
			if err != nil {
				return err
			}
			for i := at; i < len(shape); i++ {
				shape[i] = 1
			}
		case c.op == "Dropout" && o == 1, c.op == "IsNaN", c.op == "IsInf":
			kind = kindBool
		}
		if err := n.set(c, o, slices.Clone(shape), kind, axis); err != nil {
			return err
		}
	}
	return nil
}

// operands is the number of operands of operators on elements that have several.
var operands = map[string]int{
	"Add": 2, "Sub": 2, "Mul": 2, "Div": 2, "Pow": 2, "Mod": 2, "And": 2, "Or": 2, "Xor": 2, "Equal": 2, "Less": 2, "Greater": 2,
	"LessOrEqual": 2, "GreaterOrEqual": 2, "Where": 3, "PRelu": 2,
}

// broadcast joins the shapes of all inputs, from the last dimension on.
func broadcast(n *network, c *call) error {
	if err := n.args(c, 0); err != nil {
		return err
	}
	var shape []int64
	kind := int64(0)
	if least := operands[c.op]; len(c.in) < least {
		return n.wrong(c, "%d inputs; it takes %d", len(c.in), least)
	}
	for i := range c.in {
		v := n.arg(c, i)
		if v == nil {
			return n.wrong(c, "input %d is missing", i+1)
		}
		out, ok := joined(shape, v.shape)
		if !ok {
			return n.wrong(c, "shapes %v and %v do not fit", shape, v.shape)
		}
		shape = out
	}
	axis := -1
	for i := range c.in {
		// Prefer an input that has the dimension of the samples.
		if v := n.arg(c, i); v != nil && v.batched && v.axis >= 0 && axis < 0 {
			axis = v.axis + len(shape) - len(v.shape)
		}
	}
	switch c.op {
	case "Where":
		if v := n.arg(c, 1); v != nil {
			kind = v.kind
		}
	case "And", "Or", "Xor", "Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual":
		kind = kindBool
	}
	return n.set(c, 0, shape, kind, axis)
}

// joined is the shape to which two shapes are broadcast, as a new list; not ok:
// they do not fit.
func joined(a, b []int64) ([]int64, bool) {
	if len(a) < len(b) {
		a, b = b, a
	}
	out := slices.Clone(a)
	shift := len(a) - len(b)
	for i, d := range b {
		switch at := out[shift+i]; {
		case at == d || d == 1:
		case at == 1:
			out[shift+i] = d
		default:
			return nil, false
		}
	}
	return out, true
}

func cast(n *network, c *call) error {
	if err := n.args(c, 0); err != nil {
		return err
	}
	x := n.arg(c, 0)
	kind := c.num("to", kindFloat)
	if like := n.arg(c, 1); like != nil {
		kind = like.kind
	}
	return n.set(c, 0, slices.Clone(x.shape), kind, x.axis)
}

func reduce(n *network, c *call) error {
	if err := n.args(c, 0); err != nil {
		return err
	}
	x := n.arg(c, 0)
	axes, given, ok := n.list(c, "axes", 1)
	if !ok {
		return n.wrong(c, "its axes are computed from data, or kept outside of the file")
	}
	if (!given || len(axes) == 0) && c.num("noop_with_empty_axes", 0) != 0 {
		return sameAsFirst(n, c)
	}
	gone := make([]bool, len(x.shape))
	for i := range gone {
		gone[i] = len(axes) == 0
	}
	for _, a := range axes {
		at, err := n.axisOf(c, a, len(x.shape))
		if err != nil {
			return err
		}
		gone[at] = true
	}
	return n.without(c, x, gone, c.num("keepdims", 1) != 0, 0)
}

// without sets an output that lacks some dimensions of x, or has 1 in their place
// (keep).
func (n *network) without(c *call, x *value, gone []bool, keep bool, kind int64) error {
	var out []int64
	axis := -1
	for i, d := range x.shape {
		if i == x.axis && !gone[i] {
			axis = len(out)
		}
		if !gone[i] {
			out = append(out, d)
		} else if keep {
			out = append(out, 1)
		}
	}
	return n.set(c, 0, out, kind, axis)
}

func argument(n *network, c *call) error {
	if err := n.args(c, 1); err != nil {
		return err
	}
	x := n.arg(c, 0)
	at, err := n.axisOf(c, c.num("axis", 0), len(x.shape))
	if err != nil {
		return err
	}
	gone := make([]bool, len(x.shape))
	gone[at] = true
	return n.without(c, x, gone, c.num("keepdims", 1) != 0, kindInt64)
}

func topK(n *network, c *call) error {
	if err := n.args(c, 1); err != nil {
		return err
	}
	x := n.arg(c, 0)
	at, err := n.axisOf(c, c.num("axis", -1), len(x.shape))
	if err != nil {
		return err
	}
	k := c.num("k", -1)
	if v := n.arg(c, 1); v != nil && len(v.ints) == 1 {
		k = v.ints[0]
	}
	if k < 0 {
		return n.wrong(c, "how many is computed from data, or kept outside of the file")
	}
	out := slices.Clone(x.shape)
	out[at] = min(k, out[at])
	if err := n.set(c, 1, slices.Clone(out), kindInt64, x.axis); err != nil {
		return err
	}
	return n.set(c, 0, out, 0, x.axis)
}

func oneHot(n *network, c *call) error {
	if err := n.args(c, 0, 0); err != nil {
		return err
	}
	x, depth := n.arg(c, 0), n.arg(c, 1)
	if len(depth.ints) != 1 {
		return n.wrong(c, "its depth is computed from data, or kept outside of the file")
	}
	at, err := n.axisOf(c, c.num("axis", -1), len(x.shape)+1)
	if err != nil {
		return err
	}
	axis := x.axis
	if axis >= at {
		axis++
	}
	return n.set(c, 0, slices.Insert(slices.Clone(x.shape), at, depth.ints[0]), kindFloat, axis)
}
