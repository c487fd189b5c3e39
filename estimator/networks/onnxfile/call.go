package onnxfile

// arg is input i; nil: it is left out.
func (n *network) arg(c *call, i int) *value {
	if i >= len(c.in) || c.in[i] < 0 {
		return nil
	}
	return &n.values[c.in[i]]
}

// args checks that the first inputs are there; ranks are the least numbers of
// their dimensions.
func (n *network) args(c *call, ranks ...int) error {
	for i, rank := range ranks {
		v := n.arg(c, i)
		if v == nil {
			return n.wrong(c, "input %d is missing", i+1)
		}
		if len(v.shape) < rank {
			return n.wrong(c, "input %d has the shape %v; it needs %d dimensions", i+1, v.shape, rank)
		}
	}
	return nil
}

// set sets the shape of output o, its kind (0: that of the first input), and the
// dimension of the samples.
func (n *network) set(c *call, o int, shape []int64, kind int64, axis int) error {
	if o >= len(c.out) || c.out[o] < 0 {
		return nil
	}
	if what := shapeFault(shape); what != "" {
		return n.wrong(c, "output %d would have %s", o+1, what)
	}
	if kind == 0 {
		kind = kindFloat
		if v := n.arg(c, 0); v != nil {
			kind = v.kind
		}
	}
	if axis >= len(shape) {
		axis = -1
	}
	v := &n.values[c.out[o]]
	v.known, v.shape, v.kind, v.axis = true, shape, kind, axis
	return nil
}

// attr is an attribute; nil: it is not given.
func (c *call) attr(name string) *attribute {
	for i := range c.attrs {
		if c.attrs[i].name == name {
			return &c.attrs[i]
		}
	}
	return nil
}

func (c *call) num(name string, fallback int64) int64 {
	if a := c.attr(name); a != nil {
		return clamp(a.i)
	}
	return fallback
}

// each is an attribute with one number per dimension, each at least least. A
// missing one is fallback everywhere.
func (n *network) each(c *call, name string, dims int, fallback, least int64) ([]int64, error) {
	out := make([]int64, dims)
	a := c.attr(name)
	if a == nil || len(a.ints) == 0 {
		for i := range out {
			out[i] = fallback
		}
		return out, nil
	}
	if len(a.ints) != dims {
		return nil, n.wrong(c, "%s has %d numbers for %d", name, len(a.ints), dims)
	}
	for i, v := range a.ints {
		if v < least || v > 1<<31 {
			return nil, n.wrong(c, "%s of %d", name, v)
		}
		out[i] = v
	}
	return out, nil
}

// axisOf maps an axis, which may be negative, to 0 to rank-1.
func (n *network) axisOf(c *call, axis int64, rank int) (int, error) {
	if axis < int64(-rank) || axis >= int64(rank) {
		return 0, n.wrong(c, "axis %d of %d dimensions", axis, rank)
	}
	if axis < 0 {
		axis += int64(rank)
	}
	return int(axis), nil
}

// list is a list of numbers: an attribute in old opsets, an input in new ones.
// given: it is there. ok: its numbers are known, or it is not there.
func (n *network) list(c *call, attr string, in int) (list []int64, given, ok bool) {
	if a := c.attr(attr); a != nil {
		return a.ints, true, true
	}
	v := n.arg(c, in)
	if v == nil {
		return nil, false, true
	}
	return v.ints, true, v.ints != nil || v.known && product(v.shape) == 0
}
