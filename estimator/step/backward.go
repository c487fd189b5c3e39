package step

import "carma/configs/models"

// backward computes the gradients, from the last layer on.
func (r *run) backward() error {
	r.back = true
	defer func() { r.back = false }()
	for i := len(r.layers) - 1; i >= 0; i-- {
		if err := r.gathering.at(r.layers[i].block, true); err != nil {
			return err
		}
		if b := r.layers[i].block; b > 0 && r.train.Checkpointing {
			start := i
			for start > 0 && r.layers[start-1].block == b {
				start--
			}
			if err := r.recompute(start, i+1); err != nil {
				return err
			}
			i = start
			continue
		}
		if err := r.gradients(i); err != nil {
			return err
		}
	}
	for v := range r.flows.grads {
		r.flows.letGo(int32(v))
	}
	if err := r.gathering.reduceRest(); err != nil {
		return err
	}
	return r.reduce()
}

// reduce adds up the gradients of the other GPUs. DataParallel gathers the sums in
// addition to the first GPU's own gradients before it replaces those.
func (r *run) reduce() error {
	if r.train.Parallel != models.DataParallel || r.train.GPUs < 2 {
		return nil
	}
	var sums []chunk
	for _, w := range r.weights {
		if !w.trainable {
			continue
		}
		c, err := r.take(w.bytes, Gradients)
		if err != nil {
			return err
		}
		sums = append(sums, c)
	}
	r.releaseAll(sums)
	return nil
}

// recompute runs a checkpointed block forwards again, keeping tensors, and then
// backwards.
func (r *run) recompute(from, to int) error {
	inputs, err := r.fetchInputs(from, to)
	if err != nil {
		return err
	}
	away := r.away
	r.away = false // within a block, nothing is offloaded to the host
	for i := from; i < to; i++ {
		if err := r.layer(i, true); err != nil {
			return err
		}
	}
	for i := to - 1; i >= from; i-- {
		s := r.values[r.layers[i].value].storage
		r.alive[s] = false
		r.drop(s)
	}
	for i := to - 1; i >= from; i-- {
		if err := r.gradients(i); err != nil {
			return err
		}
	}
	r.away = away
	r.keepBlockInputs(from, to, -1)
	r.release(&inputs)
	return nil
}

// gradients runs one layer backwards: it computes the gradients of its inputs and
// weights. Then it frees its output's gradient and the tensors that the layer kept.
func (r *run) gradients(i int) error {
	l := &r.layers[i]
	if !l.grad {
		return nil
	}
	if r.away {
		if err := r.fetch(i); err != nil {
			return err
		}
	}
	if l.kind == crossEntropy || l.kind == models.Loss {
		if err := r.lossGradient(l); err != nil {
			return err
		}
	} else if r.flows.grads[l.value] >= 0 {
		if err := r.bothGradients(l); err != nil {
			return err
		}
	}
	r.live.passed(l)
	r.flows.letGo(l.value)
	r.releaseExtras(i)
	for _, s := range l.kept {
		if r.away {
			break
		}
		r.saves[s]--
		r.drop(s)
	}
	return r.widened(l)
}

func (r *run) inputGradients(l *layer) error {
	out := r.flows.grads[l.value]
	for _, v := range l.inputs {
		if !r.values[v].grad {
			continue
		}
		if l.passes {
			r.flows.pieces[out].refs++
			if err := r.flows.accumulate(v, out); err != nil {
				return err
			}
			continue
		}
		c, err := r.take(r.values[v].bytes, Activations)
		if err != nil {
			return err
		}
		if err := r.product(l, v); err != nil {
			return err
		}
		if err := r.temporary(l.dequantized, Weights); err != nil {
			return err
		}
		if err := r.workspace(l, r.env.Data); err != nil {
			return err
		}
		if err := r.flows.accumulate(v, r.flows.piece(c)); err != nil {
			return err
		}
	}
	return nil
}

// product allocates and frees the gradient of a broadcast factor before its summation. It
// has the size of the output.
func (r *run) product(l *layer, v int32) error {
	if l.kind != models.Mul || r.values[v].bytes >= l.out {
		return nil
	}
	c, err := r.take(l.out, Activations)
	r.release(&c)
	return err
}

// weightGradients computes the gradients of a layer's weights. The gradient of a weight
// that layers share waits until all its parts exist; then it is added to the gradient of
// earlier passes.
func (r *run) weightGradients(l *layer) error {
	if w := l.tied; w != none {
		c, err := r.weightGradient(l, w)
		if err != nil {
			return err
		}
		waits := &r.partial[w]
		if !waits.held {
			waits.view = l.kind != models.Embedding
		}
		if waits.chunk, err = r.sum(waits, c); err != nil {
			return err
		}
	}
	for k, w := range l.weights {
		if !r.weights[w].trainable {
			continue
		}
		c, err := r.weightGradient(l, w)
		if err != nil {
			return err
		}
		if c, err = r.sum(&r.partial[w], c); err != nil {
			return err
		}
		if r.stage() > 0 {
			if err := r.zero.collect(&r.weights[w], &c); err != nil {
				return err
			}
		}
		if r.gradient[w].held || r.hostGradients() || !c.held {
			r.release(&c)
		} else {
			r.gradient[w] = c
		}
		if k > 0 {
			continue
		}
		if err := r.workspace(l, r.env.Filter); err != nil {
			return err
		}
	}
	return nil
}

// weightGradient allocates a gradient of weight w. With casts it is computed in 16 bits
// first.
func (r *run) weightGradient(l *layer, w int32) (chunk, error) {
	n := min(l.cast, r.weights[w].bytes/2)
	if l.kind == models.Recurrent {
		n = 0 // all gradients exist
	}
	half, err := r.take(n, Gradients)
	if err != nil {
		return chunk{}, err
	}
	c, err := r.take(r.weights[w].bytes/r.gradShards(), Gradients)
	r.release(&half)
	return c, err
}

// flows contains the gradients of values during a backward pass.
type flows struct {
	plan *Plan
	use  *usage

	grads  []int32 // by value: index into pieces, or -1
	pieces []piece
	spare  []int32 // unused indexes of pieces
}

// piece stores a gradient with one reference.
func (f *flows) piece(c chunk) int32 {
	p := piece{chunk: c, refs: 1}
	if n := len(f.spare); n > 0 {
		i := f.spare[n-1]
		f.spare = f.spare[:n-1]
		f.pieces[i] = p
		return i
	}
	f.pieces = append(f.pieces, p)
	return int32(len(f.pieces) - 1)
}

// accumulate adds the gradient g to the gradient of value v. It adds in place if no other
// value shares the gradient of v, otherwise in new memory.
func (f *flows) accumulate(v, g int32) error {
	old := f.grads[v]
	switch {
	case old < 0:
		f.grads[v] = g
		return nil
	case f.pieces[old].refs == 1 && f.pieces[old].bytes == f.plan.values[v].bytes:
		f.unref(g)
		return nil
	}
	sum, err := f.use.take(f.plan.values[v].bytes, Activations)
	if err != nil {
		return err
	}
	f.grads[v] = f.piece(sum)
	f.unref(old)
	f.unref(g)
	return nil
}

func (f *flows) letGo(v int32) {
	if g := f.grads[v]; g >= 0 {
		f.grads[v] = -1
		f.unref(g)
	}
}

func (f *flows) unref(g int32) {
	p := &f.pieces[g]
	if p.refs--; p.refs == 0 {
		f.use.release(&p.chunk)
		f.spare = append(f.spare, g)
	}
}
