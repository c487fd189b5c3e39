package onnxfile

import (
	"slices"

	"carma/configs/models"
)

func transpose(n *network, c *call) error {
	if err := n.args(c, 0); err != nil {
		return err
	}
	x := n.arg(c, 0)
	rank := len(x.shape)
	order := make([]int64, rank)
	for i := range order {
		order[i] = int64(rank - 1 - i)
	}
	if a := c.attr("perm"); a != nil {
		order = a.ints
	}
	if len(order) != rank {
		return n.wrong(c, "an order of %d dimensions for %v", len(order), x.shape)
	}
	out, axis, seen := make([]int64, rank), -1, make([]bool, rank)
	for i, p := range order {
		if p < 0 || p >= int64(rank) || seen[p] {
			return n.wrong(c, "%v is no order of %d dimensions", order, rank)
		}
		seen[p] = true
		out[i] = x.shape[p]
		if int(p) == x.axis {
			axis = i
		}
	}
	return n.set(c, 0, out, 0, axis)
}

func reshape(n *network, c *call) error {
	if err := n.args(c, 0); err != nil {
		return err
	}
	x := n.arg(c, 0)
	asked, given, ok := n.list(c, "shape", 1)
	if !given || !ok {
		return n.wrong(c, "the new shape is computed from data, or kept outside of the file")
	}
	if len(asked) > maxRank {
		return n.wrong(c, "a shape of %d dimensions; at most %d", len(asked), maxRank)
	}
	out, free := slices.Clone(asked), -1
	for i, d := range out {
		switch {
		case d == 0 && c.num("allowzero", 0) == 0:
			if i >= len(x.shape) {
				return n.wrong(c, "the new shape %v copies a dimension that %v has not", asked, x.shape)
			}
			out[i] = x.shape[i]
		case d == -1 && free < 0:
			out[i], free = 1, i
		case d < 0:
			return n.wrong(c, "a new shape of %v", asked)
		}
	}
	have, want := product(x.shape), product(out)
	if free >= 0 && want > 0 && have%want == 0 {
		out[free] = have / want
		want = have
	}
	if have != want {
		return n.wrong(c, "%v cannot become %v", x.shape, asked)
	}
	return n.set(c, 0, out, 0, n.follow(x, out))
}

// follow finds the dimension of the samples in another shape of the same
// elements. It is the same one; or a part of it, if it was merged with others; or
// the dimension that it is merged into.
func (n *network) follow(x *value, out []int64) int {
	if x.axis < 0 {
		return -1
	}
	before, size := product(x.shape[:x.axis]), x.shape[x.axis]
	same, around, at := -1, -1, int64(1)
	for i, d := range out {
		end := models.Times(at, d)
		switch {
		case size != n.batch && d == n.batch && at >= before && end <= models.Times(before, size):
			return i
		case at == before && d == size && same < 0:
			same = i
		case at <= before && end >= models.Times(before, size) && around < 0:
			around = i
		}
		at = end
	}
	if same < 0 {
		return around
	}
	return same
}

func flatten(n *network, c *call) error {
	if err := n.args(c, 0); err != nil {
		return err
	}
	x := n.arg(c, 0)
	at := c.num("axis", 1)
	if at < 0 {
		at += int64(len(x.shape))
	}
	if at < 0 || at > int64(len(x.shape)) {
		return n.wrong(c, "axis %d of %d dimensions", at, len(x.shape))
	}
	out := []int64{product(x.shape[:at]), product(x.shape[at:])}
	return n.set(c, 0, out, 0, n.follow(x, out))
}

func squeeze(n *network, c *call) error {
	if err := n.args(c, 0); err != nil {
		return err
	}
	x := n.arg(c, 0)
	axes, given, ok := n.list(c, "axes", 1)
	if !ok {
		return n.wrong(c, "its axes are computed from data, or kept outside of the file")
	}
	gone := make([]bool, len(x.shape))
	for i, d := range x.shape {
		gone[i] = !given && d == 1 && i != x.axis
	}
	for _, a := range axes {
		at, err := n.axisOf(c, a, len(x.shape))
		if err != nil {
			return err
		}
		if x.shape[at] != 1 {
			return n.wrong(c, "dimension %d of %v is not 1", at, x.shape)
		}
		gone[at] = true
	}
	return n.without(c, x, gone, false, 0)
}

func unsqueeze(n *network, c *call) error {
	if err := n.args(c, 0); err != nil {
		return err
	}
	x := n.arg(c, 0)
	axes, _, ok := n.list(c, "axes", 1)
	if !ok || len(axes) > maxRank {
		return n.wrong(c, "its axes are computed from data, kept outside of the file, or too many")
	}
	rank := len(x.shape) + len(axes)
	added := make([]bool, rank)
	for _, a := range axes {
		at, err := n.axisOf(c, a, rank)
		if err != nil {
			return err
		}
		if added[at] {
			return n.wrong(c, "axes %v", axes)
		}
		added[at] = true
	}
	out, axis, from := make([]int64, rank), -1, 0
	for i := range out {
		if out[i] = 1; added[i] {
			continue
		}
		if from == x.axis {
			axis = i
		}
		out[i] = x.shape[from]
		from++
	}
	return n.set(c, 0, out, 0, axis)
}

func expand(n *network, c *call) error {
	if err := n.args(c, 0, 0); err != nil {
		return err
	}
	x, to := n.arg(c, 0), n.arg(c, 1)
	if to.ints == nil && product(to.shape) != 0 {
		return n.wrong(c, "the new shape is computed from data, or kept outside of the file")
	}
	if len(to.ints) > maxRank {
		return n.wrong(c, "a shape of %d dimensions; at most %d", len(to.ints), maxRank)
	}
	out, ok := joined(x.shape, to.ints)
	if !ok {
		return n.wrong(c, "%v cannot become %v", x.shape, to.ints)
	}
	axis := x.axis
	if axis >= 0 {
		axis += len(out) - len(x.shape)
	}
	return n.set(c, 0, out, 0, axis)
}

func tile(n *network, c *call) error {
	if err := n.args(c, 0, 0); err != nil {
		return err
	}
	x, by := n.arg(c, 0), n.arg(c, 1)
	if len(by.ints) != len(x.shape) {
		return n.wrong(c, "how often is computed from data, or kept outside of the file")
	}
	out := slices.Clone(x.shape)
	for i, r := range by.ints {
		out[i] = models.Times(out[i], max(r, 0))
	}
	return n.set(c, 0, out, 0, x.axis)
}

// part bounds a slice of a dimension by ONNX's rules and counts its elements.
func part(d, from, to, by int64) (start, count int64) {
	if from < 0 {
		from += d
	}
	if to < 0 {
		to += d
	}
	if by > 0 {
		from, to = min(max(from, 0), d), min(max(to, 0), d)
		return from, max(0, (to-from+by-1)/by)
	}
	from, to = min(max(from, 0), d-1), min(max(to, -1), d-1)
	return from, max(0, (from-to-by-1)/-by)
}

// cuts are the starts, ends, axes and steps of a slice.
func (n *network) cuts(c *call, rank int) (list [4][]int64, err error) {
	for i, name := range []string{"starts", "ends", "axes", "steps"} {
		values, given, ok := n.list(c, name, i+1)
		if !ok || !given && i < 2 {
			return list, n.wrong(c, "its %s are computed from data, or kept outside of the file", name)
		}
		list[i] = values
		if !given {
			list[i] = make([]int64, len(list[0]))
			for j := range list[i] {
				list[i][j] = 1
				if name == "axes" {
					list[i][j] = int64(j)
				}
			}
		}
		if len(list[i]) != len(list[0]) || len(list[i]) > rank {
			return list, n.wrong(c, "%d %s for %d starts", len(list[i]), name, len(list[0]))
		}
	}
	return list, nil
}

func slice(n *network, c *call) error {
	if err := n.args(c, 0); err != nil {
		return err
	}
	x := n.arg(c, 0)
	list, err := n.cuts(c, len(x.shape))
	if err != nil {
		return err
	}
	out := slices.Clone(x.shape)
	for i := range list[0] {
		at, err := n.axisOf(c, list[2][i], len(out))
		if err != nil {
			return err
		}
		by := clamp(list[3][i])
		if by == 0 {
			return n.wrong(c, "a step of 0")
		}
		_, out[at] = part(x.shape[at], clamp(list[0][i]), clamp(list[1][i]), by)
	}
	return n.set(c, 0, out, 0, x.axis)
}
