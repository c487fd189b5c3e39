package onnxfile

import "math"

// maxFolded bounds the elements of all contents that are computed.
const maxFolded = 4 << 20

// learn stores the content of the first output if it is small.
func (n *network) learn(c *call, ints []int64, floats []float64) {
	count := len(ints) + len(floats)
	if len(c.out) == 0 || c.out[0] < 0 || count > small || n.folded+count > maxFolded {
		return
	}
	n.folded += count
	v := &n.values[c.out[0]]
	v.ints, v.floats = ints, floats
}

// fold computes small outputs from known inputs. Shapes are made of such values.
func (n *network) fold(c *call) {
	if len(c.out) != 1 || c.out[0] < 0 {
		return
	}
	out := &n.values[c.out[0]]
	if out.ints != nil || out.floats != nil || !out.known || product(out.shape) > small {
		return
	}
	for i := range c.in {
		if i == 1 && c.op == "CastLike" {
			break
		}
		if v := n.arg(c, i); v != nil && v.ints == nil && v.floats == nil && product(v.shape) != 0 {
			return
		}
	}
	switch c.op {
	case "Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten":
		n.learn(c, n.arg(c, 0).ints, n.arg(c, 0).floats)
	case "Cast", "CastLike":
		n.learnCast(c, out)
	case "Concat":
		n.learnConcat(c, out)
	case "Gather":
		n.learnGather(c)
	case "Slice":
		n.learnSlice(c, out)
	case "Transpose":
		n.learnTranspose(c, out)
	case "Expand":
		if v := n.arg(c, 0); product(v.shape) == 1 {
			n.learn(c, repeated(v.ints, product(out.shape)), repeated(v.floats, product(out.shape)))
		}
	case "Where":
		n.learnWhere(c, out)
	case "ReduceProd":
		if product(out.shape) == 1 && n.arg(c, 0).ints != nil {
			n.learn(c, []int64{clamp(product(n.arg(c, 0).ints))}, nil)
		}
	default:
		n.learnElements(c, out)
	}
}

func (n *network) learnCast(c *call, out *value) {
	x := n.arg(c, 0)
	ints, floats := x.ints, x.floats
	switch {
	case real(out.kind) && ints != nil:
		floats, ints = make([]float64, len(ints)), nil
		for i, v := range x.ints {
			floats[i] = float64(v)
		}
	case !real(out.kind) && floats != nil:
		ints, floats = make([]int64, len(floats)), nil
		for i, v := range x.floats {
			if !(math.Abs(v) < 1<<62) {
				return
			}
			ints[i] = int64(v)
			if out.kind == kindBool && v != 0 {
				ints[i] = 1
			}
		}
	}
	n.learn(c, ints, floats)
}

func (n *network) learnConcat(c *call, out *value) {
	if len(out.shape) != 1 {
		return
	}
	var ints []int64
	for i := range c.in {
		ints = append(ints, n.arg(c, i).ints...)
	}
	if int64(len(ints)) == out.shape[0] {
		n.learn(c, ints, nil)
	}
}

func (n *network) learnGather(c *call) {
	x, index := n.arg(c, 0), n.arg(c, 1)
	if len(x.shape) != 1 || x.ints == nil {
		return
	}
	list := make([]int64, len(index.ints))
	for i, at := range index.ints {
		if at < 0 {
			at += int64(len(x.ints))
		}
		if at < 0 || at >= int64(len(x.ints)) {
			return
		}
		list[i] = x.ints[at]
	}
	n.learn(c, list, nil)
}

func (n *network) learnSlice(c *call, out *value) {
	x := n.arg(c, 0)
	list, err := n.cuts(c, len(x.shape))
	if err != nil {
		return
	}
	start, by := make([]int64, len(x.shape)), make([]int64, len(x.shape))
	for i := range by {
		by[i] = 1
	}
	for i, a := range list[2] {
		at, err := n.axisOf(c, a, len(x.shape))
		if err != nil || list[3][i] == 0 {
			return
		}
		by[at] = clamp(list[3][i])
		start[at], _ = part(x.shape[at], clamp(list[0][i]), clamp(list[1][i]), by[at])
	}
	n.pick(c, x, out, func(at []int64) (from int64) {
		for i, d := range x.shape {
			from = from*d + start[i] + at[i]*by[i]
		}
		return from
	})
}

func (n *network) learnTranspose(c *call, out *value) {
	x, order := n.arg(c, 0), c.attr("perm")
	if order == nil {
		return
	}
	there := make([]int64, len(x.shape))
	n.pick(c, x, out, func(at []int64) (from int64) {
		for i, p := range order.ints {
			there[p] = at[i]
		}
		for i, d := range x.shape {
			from = from*d + there[i]
		}
		return from
	})
}

// pick fills the output with elements of the input; from gives the input's index
// for each position in the output.
func (n *network) pick(c *call, x, out *value, from func(at []int64) int64) {
	if x.ints == nil {
		return
	}
	list, at := make([]int64, product(out.shape)), make([]int64, len(out.shape))
	for i := range list {
		rest := int64(i)
		for j := len(at) - 1; j >= 0; j-- {
			at[j], rest = rest%out.shape[j], rest/out.shape[j]
		}
		k := from(at)
		if k < 0 || k >= int64(len(x.ints)) {
			return
		}
		list[i] = x.ints[k]
	}
	n.learn(c, list, nil)
}

func (n *network) learnWhere(c *call, out *value) {
	which, a, b := n.arg(c, 0), n.arg(c, 1), n.arg(c, 2)
	if which == nil || a == nil || b == nil || a.ints == nil || b.ints == nil || which.ints == nil {
		return
	}
	list := make([]int64, product(out.shape))
	for i := range list {
		v, ok := spread(which, i, len(list))
		x, okA := spread(a, i, len(list))
		y, okB := spread(b, i, len(list))
		if !ok || !okA || !okB {
			return
		}
		if list[i] = y; v != 0 {
			list[i] = x
		}
	}
	n.learn(c, list, nil)
}

// spread is element i of a value that has one element or count elements.
func spread(v *value, i, count int) (int64, bool) {
	switch len(v.ints) {
	case 1:
		return v.ints[0], true
	case count:
		return v.ints[i], true
	}
	return 0, false
}
