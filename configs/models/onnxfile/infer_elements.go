package onnxfile

import "slices"

// sameAsFirst: every output is like the first input, but those that are
// statistics or masks nobody takes.
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
		case c.op == "Dropout" && o == 1, c.op == "IsNaN", c.op == "IsInf":
			kind = kindBool
		}
		if err := n.set(c, o, slices.Clone(shape), kind, axis); err != nil {
			return err
		}
	}
	return nil
}

// broadcast joins the shapes of all inputs from the right.
func broadcast(n *network, c *call) error {
	if err := n.args(c, 0); err != nil {
		return err
	}
	var shape []int64
	kind := int64(0)
	for i := range c.in {
		v := n.arg(c, i)
		if v == nil {
			continue
		}
		out, ok := joined(shape, v.shape)
		if !ok {
			return n.wrong(c, "shapes %v and %v do not fit", shape, v.shape)
		}
		shape = out
	}
	axis := -1
	for i := range c.in {
		// The one that has the samples, else one that is an input's.
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

// joined is the shape that two shapes are spread to; a new list.
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

// without sets an output of which some dimensions are gone, or 1.
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

func shapeOf(n *network, c *call) error {
	if err := n.args(c, 0); err != nil {
		return err
	}
	x := n.arg(c, 0)
	rank := int64(len(x.shape))
	from, to := c.num("start", 0), c.num("end", rank)
	if from < 0 {
		from += rank
	}
	if to < 0 {
		to += rank
	}
	from, to = min(max(from, 0), rank), min(max(to, 0), rank)
	part := slices.Clone(x.shape[from:max(from, to)])
	if err := n.set(c, 0, []int64{int64(len(part))}, kindInt64, -1); err != nil {
		return err
	}
	n.learn(c, part, nil)
	return nil
}

func sizeOfAll(n *network, c *call) error {
	if err := n.args(c, 0); err != nil {
		return err
	}
	if err := n.set(c, 0, nil, kindInt64, -1); err != nil {
		return err
	}
	n.learn(c, []int64{product(n.arg(c, 0).shape)}, nil)
	return nil
}

func constant(n *network, c *call) error {
	t := tensor{kind: kindFloat}
	switch {
	case c.attr("value") != nil && c.attr("value").t != nil:
		t = *c.attr("value").t
	case c.attr("value_int") != nil:
		t.kind, t.ints = kindInt64, []int64{c.attr("value_int").i}
	case c.attr("value_ints") != nil:
		t.kind, t.ints = kindInt64, c.attr("value_ints").ints
		t.dims = []int64{int64(len(t.ints))}
	case c.attr("value_float") != nil:
		t.floats = []float64{c.attr("value_float").f}
	case c.attr("value_floats") != nil:
		t.floats = c.attr("value_floats").floats
		t.dims = []int64{int64(len(t.floats))}
	default:
		return n.wrong(c, "a constant without a value that is understood")
	}
	if len(c.out) > 0 && c.out[0] >= 0 {
		t.name = n.values[c.out[0]].name
		n.constant(c.out[0], &t)
		if generated(t.name) && alike(t.floats) {
			n.values[c.out[0]].weights = nil // ones and zeros of a norm without parameters
		}
	}
	return nil
}

// alike tells whether there are numbers, all the same.
func alike(list []float64) bool {
	for _, f := range list {
		if f != list[0] {
			return false
		}
	}
	return len(list) > 0
}

func constantOfShape(n *network, c *call) error {
	if err := n.args(c, 0); err != nil {
		return err
	}
	shape := n.arg(c, 0)
	if shape.ints == nil && product(shape.shape) != 0 {
		return n.wrong(c, "its shape is computed from data, or kept outside of the file")
	}
	t := &tensor{kind: kindFloat, floats: []float64{0}}
	if a := c.attr("value"); a != nil && a.t != nil {
		t = a.t
	}
	if err := n.set(c, 0, slices.Clone(shape.ints), t.kind, -1); err != nil {
		return err
	}
	if count := product(shape.ints); count <= small {
		n.learn(c, repeated(t.ints, count), repeated(t.floats, count))
	}
	return nil
}

func repeated[T any](one []T, count int64) []T {
	if len(one) != 1 || count == 0 {
		return nil
	}
	return slices.Repeat(one, int(count))
}

func rangeOf(n *network, c *call) error {
	if err := n.args(c, 0, 0, 0); err != nil {
		return err
	}
	a, b, d := n.arg(c, 0), n.arg(c, 1), n.arg(c, 2)
	if len(a.ints) == 1 && len(b.ints) == 1 && len(d.ints) == 1 && d.ints[0] != 0 {
		from, to, by := clamp(a.ints[0]), clamp(b.ints[0]), clamp(d.ints[0])
		count := max(0, (to-from+by-sign(by))/by)
		if err := n.set(c, 0, []int64{count}, a.kind, -1); err != nil || count > small {
			return err
		}
		list := make([]int64, count)
		for i := range list {
			list[i] = from + int64(i)*by
		}
		n.learn(c, list, nil)
		return nil
	}
	if len(a.floats) == 1 && len(b.floats) == 1 && len(d.floats) == 1 && d.floats[0] != 0 {
		if count := (b.floats[0] - a.floats[0]) / d.floats[0]; count >= 0 && count < 1<<50 {
			return n.set(c, 0, []int64{int64(count + 0.999999)}, a.kind, -1)
		}
		return n.set(c, 0, []int64{0}, a.kind, -1)
	}
	return n.wrong(c, "its limits are computed from data, or kept outside of the file")
}

func sign(n int64) int64 {
	if n < 0 {
		return -1
	}
	return 1
}
