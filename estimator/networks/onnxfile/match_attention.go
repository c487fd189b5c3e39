package onnxfile

import (
	"slices"

	"carma/configs/models"
)

// matchAttention finds softmax(q k + mask) v. PyTorch computes it in one kernel
// that stores no scores.
func (b *builder) matchAttention(softmax *call) {
	end, after := b.weighted(softmax)
	if end == nil {
		return
	}
	scores, before := b.scores(softmax)
	if scores == nil {
		return
	}
	shape, q, k, v := b.values[scores.out[0]].shape, scores.in[0], scores.in[1], end.in[1]
	keys := b.values[k].shape
	if !b.values[q].batched || !b.values[k].batched || !b.values[v].batched || len(shape) < 3 || len(keys) < 3 {
		return
	}
	one, _ := b.perSample(&b.values[scores.out[0]])
	rows := models.Times(shape[len(shape)-1], shape[len(shape)-2])
	if rows == 0 || product(one)%rows != 0 {
		return
	}
	heads := product(one) / rows
	calls := slices.Concat([]*call{end}, after, []*call{softmax}, before)
	for i, id := range []*int32{&q, &k, &v} {
		inner := []*call{scores, scores, end}[i]
		calls = append(calls, b.operand(id, inner)...)
	}
	biases := b.biases(before)
	b.attentions++
	b.fuse(calls, func(b *builder, c *call) {
		l := models.Layer{Type: models.Attention, Inputs: b.sources([]int32{q, k, v}), Heads: heads}
		b.params(&l, biases...)
		l.Name = ""
		b.add(c, 0, l)
		b.values[c.out[0]].loose = true
	})
}

// biases are trained tensors that are added to the scores, like those of relative
// positions. A tensor without the name of a module is a mask.
func (b *builder) biases(calls []*call) (ids []int32) {
	for _, c := range calls {
		for _, id := range c.in {
			if id < 0 || b.values[id].batched {
				continue
			}
			for _, w := range b.values[id].weights {
				if generated(b.values[w].name) {
					b.warn("a mask or bias of attention scores that the exporter has computed is assumed not to be trained")
					continue
				}
				ids = append(ids, w)
			}
		}
	}
	return ids
}

// weighted follows the weights of attention to their product with the values.
// They may be used twice: rows without any key are set to 0 (IsNaN, Where).
func (b *builder) weighted(softmax *call) (end *call, between []*call) {
	at := softmax
	for range 6 {
		id := at.out[0]
		if b.values[id].output || len(b.values[id].uses) > maxUses {
			return nil, nil
		}
		var next *call
		for _, use := range b.values[id].uses {
			u := &b.calls[use]
			switch {
			case !b.anyBatched(u) || !slices.Contains(u.data(), id):
			case u.op == "IsNaN":
				between = append(between, u)
			case next == nil || next == u:
				next = u
			default:
				return nil, nil
			}
		}
		if next == nil || next.told || next.done {
			return nil, nil
		}
		switch next.op {
		case "MatMul":
			if len(next.in) != 2 || next.in[0] != id || next.in[1] < 0 {
				return nil, nil
			}
			return next, between
		case "Dropout", "Cast", "CastLike", "Identity", "Where":
			between = append(between, next)
			at = next
		default:
			return nil, nil
		}
	}
	return nil, nil
}

// scores follows the input of a softmax back to the product of queries and keys,
// through a factor and a mask.
func (b *builder) scores(softmax *call) (product *call, between []*call) {
	id, shape := softmax.in[0], b.values[softmax.in[0]].shape
	for range 8 {
		c := b.maker(id)
		if c == nil || c.told || c.done || len(c.out) != 1 || b.values[c.out[0]].output || len(b.takers(c.out[0])) > 1 {
			return nil, nil
		}
		if c.op == "MatMul" && len(c.in) == 2 {
			return c, append(between, c)
		}
		from := int32(-1)
		switch c.op {
		case "Reshape":
			from = c.in[0]
			shape = b.values[from].shape
		case "Mul", "Div", "Add", "Where", "Cast", "CastLike", "Max":
			for _, in := range c.in {
				// The mask has no dimension of heads, or no product before it.
				if in >= 0 && b.values[in].batched && slices.Equal(b.values[in].shape, shape) && b.fromProduct(in) {
					from = in
				}
			}
		}
		if from < 0 {
			return nil, nil
		}
		between = append(between, c)
		id = from
	}
	return nil, nil
}

// fromProduct reports whether a value comes from a matrix product a few operators
// before.
func (b *builder) fromProduct(id int32) bool {
	for range 8 {
		c := b.maker(id)
		if c == nil {
			return false
		}
		if c.op == "MatMul" {
			return true
		}
		if c.op == "Reshape" {
			id = c.in[0]
		} else if id = c.first(b); id < 0 {
			return false
		}
	}
	return false
}

// first is the first input with the shape of the output, or -1.
func (c *call) first(b *builder) int32 {
	for _, in := range c.in {
		if in >= 0 && b.values[in].batched && slices.Equal(b.values[in].shape, b.values[c.out[0]].shape) {
			return in
		}
	}
	return -1
}

// operand follows an operand of attention back through factors and views, which
// attention does itself. *id becomes the value before them. It returns the
// operators that become part of attention: those whose output is not used
// elsewhere.
func (b *builder) operand(id *int32, user *call) (between []*call) {
	free := true
	for range maxPattern {
		c := b.maker(*id)
		if c == nil || c.told || c.done {
			return between
		}
		if !slices.Contains([]string{"Mul", "Div", "Transpose", "Reshape", "Identity", "Squeeze", "Unsqueeze", "Cast", "CastLike"}, c.op) {
			return between
		}
		from := c.in[0]
		if c.op == "Mul" || c.op == "Div" {
			if from = b.single(c); from < 0 {
				return between
			}
		}
		if from < 0 || !b.values[from].batched {
			return between
		}
		if free = free && b.next(c) == user; free {
			between = append(between, c)
		}
		user, *id = c, from
	}
	return between
}
