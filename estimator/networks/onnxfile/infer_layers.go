package onnxfile

import (
	"slices"

	"carma/configs/models"
)

// window has the sizes of a convolution's or a pool's window.
type window struct {
	kernel, strides, dilations, pads []int64
	auto                             string
	ceil                             bool
}

func (n *network) window(c *call, kernel []int64, dims int) (w window, err error) {
	if w.kernel, err = n.each(c, "kernel_shape", dims, 1, 1); err != nil {
		return w, err
	}
	if kernel != nil {
		w.kernel = kernel
	}
	if w.strides, err = n.each(c, "strides", dims, 1, 1); err != nil {
		return w, err
	}
	if w.dilations, err = n.each(c, "dilations", dims, 1, 1); err != nil {
		return w, err
	}
	if w.pads, err = n.each(c, "pads", 2*dims, 0, -1<<31); err != nil {
		return w, err
	}
	if a := c.attr("auto_pad"); a != nil {
		w.auto = a.s
	}
	w.ceil = c.num("ceil_mode", 0) != 0
	return w, nil
}

// out is the output size of dimension i, from its input size.
func (w *window) out(in int64, i int) int64 {
	reach := models.Times(w.dilations[i], w.kernel[i]-1) + 1
	switch w.auto {
	case "SAME_UPPER", "SAME_LOWER":
		return (in + w.strides[i] - 1) / w.strides[i]
	case "VALID":
		w.pads[i], w.pads[i+len(w.kernel)] = 0, 0
	}
	room := in + w.pads[i] + w.pads[i+len(w.kernel)] - reach
	if room < 0 {
		return -1
	}
	steps := room / w.strides[i]
	if w.ceil && room%w.strides[i] > 0 && (steps+1)*w.strides[i] < in+w.pads[i] {
		steps++
	}
	return steps + 1
}

// slide is the shape of a window's output over x, with so many channels.
func (n *network) slide(c *call, x *value, w *window, channels int64) ([]int64, error) {
	out := []int64{x.shape[0], channels}
	for i := range w.kernel {
		if w.kernel[i] > 1<<31 {
			return nil, n.wrong(c, "a kernel of %v", w.kernel)
		}
		d := w.out(x.shape[i+2], i)
		if d < 0 {
			return nil, n.wrong(c, "a kernel of %v is larger than its input %v", w.kernel, x.shape)
		}
		out = append(out, d)
	}
	return out, nil
}

func convolve(n *network, c *call) error {
	if err := n.args(c, 3, 3); err != nil {
		return err
	}
	x, weight := n.arg(c, 0), n.arg(c, 1)
	groups := c.num("group", 1)
	if groups < 1 || len(weight.shape) != len(x.shape) || models.Times(weight.shape[1], groups) != x.shape[1] {
		return n.wrong(c, "a weight of %v in %d groups does not fit the input %v", weight.shape, groups, x.shape)
	}
	w, err := n.window(c, weight.shape[2:], len(x.shape)-2)
	if err != nil {
		return err
	}
	if slices.Contains(w.kernel, 0) {
		return n.wrong(c, "a kernel of %v", w.kernel)
	}
	out, err := n.slide(c, x, &w, weight.shape[0])
	if err != nil {
		return err
	}
	return n.set(c, 0, out, 0, x.axis)
}

func convolveTransposed(n *network, c *call) error {
	if err := n.args(c, 3, 3); err != nil {
		return err
	}
	x, weight := n.arg(c, 0), n.arg(c, 1)
	dims, groups := len(x.shape)-2, c.num("group", 1)
	if groups < 1 || len(weight.shape) != len(x.shape) || weight.shape[0] != x.shape[1] {
		return n.wrong(c, "a weight of %v does not fit the input %v", weight.shape, x.shape)
	}
	w, err := n.window(c, weight.shape[2:], dims)
	if err != nil {
		return err
	}
	extra, err := n.each(c, "output_padding", dims, 0, 0)
	if err != nil {
		return err
	}
	out := []int64{x.shape[0], models.Times(weight.shape[1], groups)}
	asked := c.attr("output_shape")
	for i := range dims {
		d := models.Times(x.shape[i+2]-1, w.strides[i])
		if x.shape[i+2] < 1 || w.kernel[i] < 1 || w.kernel[i] > 1<<31 || d > 1<<50 {
			return n.wrong(c, "an input of %v and a kernel of %v", x.shape, w.kernel)
		}
		d += models.Times(w.dilations[i], w.kernel[i]-1) + 1 + extra[i] - w.pads[i] - w.pads[i+dims]
		switch {
		case asked != nil && len(asked.ints) == dims:
			d = asked.ints[i]
		case w.auto == "SAME_UPPER" || w.auto == "SAME_LOWER":
			d = models.Times(x.shape[i+2], w.strides[i])
		}
		out = append(out, d)
	}
	return n.set(c, 0, out, 0, x.axis)
}

func pool(n *network, c *call) error {
	if err := n.args(c, 3); err != nil {
		return err
	}
	x := n.arg(c, 0)
	w, err := n.window(c, nil, len(x.shape)-2)
	if err != nil {
		return err
	}
	out, err := n.slide(c, x, &w, x.shape[1])
	if err != nil {
		return err
	}
	if err := n.set(c, 1, out, kindInt64, x.axis); err != nil {
		return err
	}
	return n.set(c, 0, out, 0, x.axis)
}

func poolAll(n *network, c *call) error {
	if err := n.args(c, 2); err != nil {
		return err
	}
	x := n.arg(c, 0)
	out := slices.Clone(x.shape)
	for i := 2; i < len(out); i++ {
		out[i] = 1
	}
	return n.set(c, 0, out, 0, x.axis)
}

func gemm(n *network, c *call) error {
	if err := n.args(c, 2, 2); err != nil {
		return err
	}
	a, b := n.arg(c, 0), n.arg(c, 1)
	if len(a.shape) != 2 || len(b.shape) != 2 {
		return n.wrong(c, "matrices of %v and %v", a.shape, b.shape)
	}
	m, k, axis := a.shape[0], a.shape[1], a.axis
	if c.num("transA", 0) != 0 {
		m, k = k, m
		if axis >= 0 {
			axis = 1 - axis
		}
	}
	k2, out := b.shape[0], b.shape[1]
	if c.num("transB", 0) != 0 {
		k2, out = out, k2
	}
	if k != k2 {
		return n.wrong(c, "matrices of %v and %v do not fit", a.shape, b.shape)
	}
	return n.set(c, 0, []int64{m, out}, 0, axis)
}

func matMul(n *network, c *call) error {
	if err := n.args(c, 1, 1); err != nil {
		return err
	}
	a, b := n.arg(c, 0), n.arg(c, 1)
	left, right := a.shape, b.shape
	if c.op == "FusedMatMul" {
		left, right = swapped(left, c.num("transA", 0) != 0), swapped(right, c.num("transB", 0) != 0)
	}
	first, last := left, right
	if len(left) == 1 {
		first = []int64{1, left[0]}
	}
	if len(right) == 1 {
		last = []int64{right[0], 1}
	}
	if first[len(first)-1] != last[len(last)-2] {
		return n.wrong(c, "matrices of %v and %v do not fit", left, right)
	}
	out, ok := joined(first[:len(first)-2], last[:len(last)-2])
	if !ok {
		return n.wrong(c, "matrices of %v and %v do not fit", left, right)
	}
	if len(left) > 1 {
		out = append(out, first[len(first)-2])
	}
	if len(right) > 1 {
		out = append(out, last[len(last)-1])
	}
	axis := -1
	if a.batched && a.axis >= 0 && len(left) > 1 {
		axis = a.axis + len(out) - len(left)
		if len(right) == 1 {
			axis++
		}
	} else if b.batched && b.axis >= 0 {
		axis = b.axis + len(out) - len(right)
	}
	return n.set(c, 0, out, 0, max(axis, -1))
}

func swapped(shape []int64, swap bool) []int64 {
	if swap && len(shape) > 1 {
		shape = slices.Clone(shape)
		last := len(shape) - 1
		shape[last], shape[last-1] = shape[last-1], shape[last]
	}
	return shape
}

// recurrent is a rule for recurrent layers: Y is [steps, directions, batch,
// hidden], with layout 1 [batch, steps, directions, hidden].
func recurrent(n *network, c *call) error {
	if err := n.args(c, 3, 3, 3); err != nil {
		return err
	}
	x, r := n.arg(c, 0), n.arg(c, 2)
	directions, hidden := r.shape[0], r.shape[2]
	steps, batch := x.shape[0], x.shape[1]
	out, state := []int64{steps, directions, batch, hidden}, []int64{directions, batch, hidden}
	axis, axisState := 2, 1
	if c.num("layout", 0) == 1 {
		batch, steps = x.shape[0], x.shape[1]
		out, state = []int64{batch, steps, directions, hidden}, []int64{batch, directions, hidden}
		axis, axisState = 0, 0
	}
	if x.axis < 0 {
		axis, axisState = -1, -1
	}
	for o := range 3 {
		shape, at := state, axisState
		if o == 0 {
			shape, at = out, axis
		}
		if err := n.set(c, o, slices.Clone(shape), 0, at); err != nil {
			return err
		}
	}
	return nil
}
