package step

import "carma/configs/models"

const crossEntropy = models.CrossEntropy

// backward computes the gradients, last layer first.
func (r *run) backward() error {
	for i := len(r.layers) - 1; i >= 0; i-- {
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
	for v := range r.grads {
		r.letGo(int32(v))
	}
	return r.reduce()
}

// reduce adds the gradients of the other GPUs up: DataParallel gathers the
// sums beside the first GPU's own before it takes them over.
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

// recompute runs a checkpointed block again, keeping, and then backwards.
func (r *run) recompute(from, to int) error {
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
	r.keepBlockInputs(from, to, -1)
	return nil
}

// gradients runs one layer backwards: the gradient of its inputs, of its
// weights, then lets go of its output's gradient and of what it kept.
func (r *run) gradients(i int) error {
	l := &r.layers[i]
	if !l.grad {
		return nil
	}
	if l.kind == crossEntropy || l.kind == models.Loss {
		if err := r.lossGradient(l); err != nil {
			return err
		}
	} else if r.grads[l.value] >= 0 {
		if err := r.inputGradients(l); err != nil {
			return err
		}
		if err := r.weightGradients(l); err != nil {
			return err
		}
	}
	r.letGo(l.value)
	r.releaseAll(r.extras[i])
	r.extras[i] = r.extras[i][:0]
	for _, s := range l.kept {
		r.saves[s]--
		r.drop(s)
	}
	return nil
}

// lossGradient starts the backward pass: the gradient of the log-softmax, and
// from it that of its input.
func (r *run) lossGradient(l *layer) error {
	v := l.inputs[0]
	n := r.values[v].bytes
	inner, err := r.take(n, Activations)
	if err != nil {
		return err
	}
	if l.kind == crossEntropy {
		outer, err := r.take(n, Activations)
		if err != nil {
			return err
		}
		r.release(&inner)
		inner = outer
	}
	return r.accumulate(v, r.piece(inner))
}

func (r *run) inputGradients(l *layer) error {
	out := r.grads[l.value]
	for _, v := range l.inputs {
		if !r.values[v].grad {
			continue
		}
		if l.passes {
			r.pieces[out].refs++
			if err := r.accumulate(v, out); err != nil {
				return err
			}
			continue
		}
		c, err := r.take(r.values[v].bytes, Activations)
		if err != nil {
			return err
		}
		if err := r.workspace(l, r.env.Data); err != nil {
			return err
		}
		if err := r.accumulate(v, r.piece(c)); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) weightGradients(l *layer) error {
	for k, w := range l.weights {
		if !r.weights[w].trainable {
			continue
		}
		// With casts the gradient is first computed in 16 bits.
		half, err := r.take(min(l.cast, r.weights[w].bytes/2), Gradients)
		if err != nil {
			return err
		}
		if !r.gradient[w].held {
			if r.gradient[w], err = r.take(r.weights[w].bytes/r.gradShards(), Gradients); err != nil {
				return err
			}
		}
		r.release(&half)
		if k > 0 {
			continue
		}
		if err := r.workspace(l, r.env.Filter); err != nil {
			return err
		}
	}
	return nil
}

// piece stores a gradient with one reference.
func (r *run) piece(c chunk) int32 {
	p := piece{chunk: c, refs: 1}
	if n := len(r.spare); n > 0 {
		i := r.spare[n-1]
		r.spare = r.spare[:n-1]
		r.pieces[i] = p
		return i
	}
	r.pieces = append(r.pieces, p)
	return int32(len(r.pieces) - 1)
}

// accumulate adds the gradient g to value v's: in place if nobody else has
// either, else into new memory.
func (r *run) accumulate(v, g int32) error {
	old := r.grads[v]
	switch {
	case old < 0:
		r.grads[v] = g
		return nil
	case r.pieces[old].refs == 1 && r.pieces[old].bytes == r.values[v].bytes:
		r.unref(g)
		return nil
	}
	sum, err := r.take(r.values[v].bytes, Activations)
	if err != nil {
		return err
	}
	r.grads[v] = r.piece(sum)
	r.unref(old)
	r.unref(g)
	return nil
}

func (r *run) letGo(v int32) {
	if g := r.grads[v]; g >= 0 {
		r.grads[v] = -1
		r.unref(g)
	}
}

func (r *run) unref(g int32) {
	p := &r.pieces[g]
	if p.refs--; p.refs == 0 {
		r.release(&p.chunk)
		r.spare = append(r.spare, g)
	}
}
