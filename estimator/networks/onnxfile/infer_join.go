package onnxfile

import (
	"math"
	"slices"

	"carma/configs/models"
)

func concat(n *network, c *call) error {
	if err := n.args(c, 1); err != nil {
		return err
	}
	out := slices.Clone(n.arg(c, 0).shape)
	at, err := n.axisOf(c, c.num("axis", 0), len(out))
	if err != nil {
		return err
	}
	axis := n.arg(c, 0).axis
	for i := 1; i < len(c.in); i++ {
		v := n.arg(c, i)
		if v == nil || len(v.shape) != len(out) {
			return n.wrong(c, "input %d does not have the dimensions of the first, %v", i+1, out)
		}
		for j, d := range v.shape {
			if j != at && d != out[j] {
				return n.wrong(c, "shapes %v and %v do not fit", n.arg(c, 0).shape, v.shape)
			}
		}
		if axis < 0 {
			axis = v.axis
		}
		out[at] = clamp(out[at] + v.shape[at])
	}
	return n.set(c, 0, out, 0, axis)
}

func split(n *network, c *call) error {
	if err := n.args(c, 1); err != nil {
		return err
	}
	x := n.arg(c, 0)
	at, err := n.axisOf(c, c.num("axis", 0), len(x.shape))
	if err != nil {
		return err
	}
	parts, given, ok := n.list(c, "split", 1)
	if !ok {
		return n.wrong(c, "its parts are computed from data, or kept outside of the file")
	}
	count := int64(len(c.out))
	for o := range c.out {
		out := slices.Clone(x.shape)
		switch {
		case !given:
			each := (x.shape[at] + count - 1) / count
			out[at] = max(0, min(each, x.shape[at]-int64(o)*each))
		case o < len(parts) && parts[o] >= 0 && parts[o] <= x.shape[at]:
			out[at] = parts[o]
		default:
			return n.wrong(c, "parts %v of %v", parts, x.shape)
		}
		if err := n.set(c, o, out, 0, x.axis); err != nil {
			return err
		}
	}
	return nil
}

func gather(n *network, c *call) error {
	if err := n.args(c, 1, 0); err != nil {
		return err
	}
	x, index := n.arg(c, 0), n.arg(c, 1)
	at, err := n.axisOf(c, c.num("axis", 0), len(x.shape))
	if err != nil {
		return err
	}
	out := slices.Concat(x.shape[:at], index.shape, x.shape[at+1:])
	axis := -1
	switch {
	case x.batched && x.axis >= 0 && x.axis < at:
		axis = x.axis
	case x.batched && x.axis > at:
		axis = x.axis + len(index.shape) - 1
	case index.batched && index.axis >= 0:
		axis = at + index.axis
	}
	return n.set(c, 0, out, 0, axis)
}

func gatherElements(n *network, c *call) error {
	if err := n.args(c, 1, 1); err != nil {
		return err
	}
	x, index := n.arg(c, 0), n.arg(c, 1)
	axis := index.axis
	if axis < 0 {
		axis = x.axis
	}
	return n.set(c, 0, slices.Clone(index.shape), 0, axis)
}

func gatherND(n *network, c *call) error {
	if err := n.args(c, 1, 1); err != nil {
		return err
	}
	x, index := n.arg(c, 0), n.arg(c, 1)
	last, batch := len(index.shape)-1, c.num("batch_dims", 0)
	deep := index.shape[last]
	if batch < 0 || batch > int64(last) || deep > int64(len(x.shape))-batch {
		return n.wrong(c, "indices of %v into %v", index.shape, x.shape)
	}
	axis := index.axis
	if axis < 0 && x.axis >= 0 && int64(x.axis) < batch+deep {
		axis = 0
	}
	return n.set(c, 0, slices.Concat(index.shape[:last], x.shape[batch+deep:]), 0, axis)
}

func pad(n *network, c *call) error {
	if err := n.args(c, 0); err != nil {
		return err
	}
	x := n.arg(c, 0)
	pads, given, ok := n.list(c, "pads", 1)
	axes, some, known := n.list(c, "axes", 3)
	if !ok || !given || !known {
		return n.wrong(c, "its pads are computed from data, or kept outside of the file")
	}
	if !some {
		axes = nil
		for i := range x.shape {
			axes = append(axes, int64(i))
		}
	}
	if len(pads) != 2*len(axes) {
		return n.wrong(c, "%d pads for %d dimensions", len(pads), len(axes))
	}
	out := slices.Clone(x.shape)
	for i, a := range axes {
		at, err := n.axisOf(c, a, len(out))
		if err != nil {
			return err
		}
		out[at] += clamp(pads[i]) + clamp(pads[i+len(axes)])
	}
	return n.set(c, 0, out, 0, x.axis)
}

// resize takes sizes or factors, whose position differs between opsets.
func resize(n *network, c *call) error {
	if err := n.args(c, 0); err != nil {
		return err
	}
	x := n.arg(c, 0)
	if v := n.arg(c, 3); v != nil && c.op == "Resize" {
		if len(v.ints) != len(x.shape) && c.attr("axes") == nil {
			return n.wrong(c, "its sizes are computed from data, or kept outside of the file")
		}
		return n.scaled(c, x, len(v.ints), func(_ int64, i int) int64 { return v.ints[i] })
	}
	var factors []float64
	if a := c.attr("scales"); a != nil {
		factors = a.floats
	}
	for _, i := range []int{1, 2} {
		if v := n.arg(c, i); v != nil && len(v.floats) > 0 && (i == 2 || c.op == "Upsample" || len(c.in) == 2) {
			factors = v.floats
		}
	}
	if len(factors) == 0 {
		return n.wrong(c, "its scales are computed from data, or kept outside of the file")
	}
	return n.scaled(c, x, len(factors), func(d int64, i int) int64 {
		if f := float64(d) * factors[i]; f >= 0 && f < math.MaxInt32 {
			return int64(math.Floor(f + 1e-6))
		}
		return -1
	})
}

// scaled sets an output in which count dimensions of x have new sizes.
func (n *network) scaled(c *call, x *value, count int, size func(d int64, i int) int64) error {
	out := slices.Clone(x.shape)
	a := c.attr("axes")
	if a == nil && count != len(out) || a != nil && len(a.ints) != count {
		return n.wrong(c, "%d sizes for %v", count, x.shape)
	}
	for i := range count {
		at := i
		if a != nil {
			var err error
			if at, err = n.axisOf(c, a.ints[i], len(out)); err != nil {
				return err
			}
		}
		out[at] = size(x.shape[at], i)
	}
	return n.set(c, 0, out, 0, x.axis)
}

func depthToSpace(n *network, c *call) error {
	return n.blocks(c, func(s []int64, b int64) []int64 {
		return []int64{s[0], s[1] / (b * b), models.Times(s[2], b), models.Times(s[3], b)}
	})
}

func spaceToDepth(n *network, c *call) error {
	return n.blocks(c, func(s []int64, b int64) []int64 {
		return []int64{s[0], models.Times(s[1], b*b), s[2] / b, s[3] / b}
	})
}

func (n *network) blocks(c *call, out func(shape []int64, block int64) []int64) error {
	if err := n.args(c, 4); err != nil {
		return err
	}
	x, block := n.arg(c, 0), c.num("blocksize", 0)
	if len(x.shape) != 4 || block < 1 || block > 1<<16 {
		return n.wrong(c, "blocks of %d in %v", block, x.shape)
	}
	return n.set(c, 0, out(x.shape, block), 0, x.axis)
}
