package onnxfile

import (
	"slices"
	"strings"

	"carma/configs/models"
)

// attention is the operator of opset 23. Queries, keys and values have a
// dimension of heads, or the heads are inside the last dimension.
func attention(n *network, c *call) error {
	if err := n.args(c, 3, 3, 3); err != nil {
		return err
	}
	q, v := n.arg(c, 0), n.arg(c, 2)
	out := slices.Clone(q.shape)
	if len(q.shape) != len(v.shape) || len(q.shape) > 4 {
		return n.wrong(c, "queries of %v and values of %v", q.shape, v.shape)
	}
	last := len(out) - 1
	if out[last] = v.shape[last]; last == 2 {
		heads, kept := c.num("q_num_heads", 1), c.num("kv_num_heads", 1)
		if heads < 1 || kept < 1 || v.shape[2]%kept != 0 {
			return n.wrong(c, "%d heads over values of %v", kept, v.shape)
		}
		out[last] = models.Times(heads, v.shape[2]/kept)
	}
	for o := 1; o < len(c.out); o++ {
		if c.out[o] >= 0 && len(n.values[c.out[o]].uses) > 0 {
			return n.wrong(c, "its output %d is used: keys of an earlier step are for inference", o+1)
		}
	}
	return n.set(c, 0, out, 0, q.axis)
}

// attentionMicrosoft includes the projection of queries, keys and values.
func attentionMicrosoft(n *network, c *call) error {
	if err := n.args(c, 3, 2); err != nil {
		return err
	}
	x, weight := n.arg(c, 0), n.arg(c, 1)
	if len(weight.shape) != 2 || weight.shape[0] != x.shape[2] || weight.shape[1]%3 != 0 {
		return n.wrong(c, "a weight of %v does not fit the input %v", weight.shape, x.shape)
	}
	return n.set(c, 0, []int64{x.shape[0], x.shape[1], weight.shape[1] / 3}, 0, x.axis)
}

func multiHead(n *network, c *call) error {
	if err := n.args(c, 3); err != nil {
		return err
	}
	q, v := n.arg(c, 0), n.arg(c, 2)
	if len(q.shape) != 3 || v == nil || len(v.shape) != 3 {
		return n.wrong(c, "only queries and values of three dimensions are understood")
	}
	return n.set(c, 0, []int64{q.shape[0], q.shape[1], v.shape[2]}, 0, q.axis)
}

// einsum follows an equation like bhid,bhjd->bhij.
func einsum(n *network, c *call) error {
	a := c.attr("equation")
	if a == nil || strings.Contains(a.s, ".") {
		return n.wrong(c, "only equations of letters are understood")
	}
	from, to, explicit := strings.Cut(strings.ReplaceAll(a.s, " ", ""), "->")
	terms := strings.Split(from, ",")
	if !explicit || len(terms) != len(c.in) || len(to) > maxRank {
		return n.wrong(c, "the equation %s", short(a.s))
	}
	sizes, batch := map[byte]int64{}, byte(0)
	for i, term := range terms {
		v := n.arg(c, i)
		if v == nil || len(term) != len(v.shape) {
			return n.wrong(c, "the equation %s does not fit input %d", short(a.s), i+1)
		}
		for j, d := range v.shape {
			if old, ok := sizes[term[j]]; ok && old != d && old != 1 && d != 1 {
				return n.wrong(c, "in the equation %s %q is %d and %d", short(a.s), term[j], old, d)
			}
			sizes[term[j]] = max(sizes[term[j]], d)
			if v.batched && j == v.axis {
				batch = term[j]
			}
		}
	}
	out, axis := make([]int64, len(to)), -1
	for i := range len(to) {
		d, ok := sizes[to[i]]
		if !ok {
			return n.wrong(c, "the equation %s", short(a.s))
		}
		if out[i] = d; to[i] == batch {
			axis = i
		}
	}
	return n.set(c, 0, out, 0, axis)
}
