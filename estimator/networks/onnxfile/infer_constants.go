package onnxfile

import "slices"

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
			n.values[c.out[0]].weights = nil // the ones and zeros of a norm without parameters are not weights
		}
	}
	return nil
}

// alike tells whether the list is not empty and all its numbers are equal.
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
	if count := product(shape.ints); count <= small && n.folded < maxFolded {
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
