package step

// scores allocates the tensors that layer i keeps besides storages. Unfused attention
// computes the softmax of its scores in 32 bits. During the softmax, the scores or a
// 32-bit copy of 16-bit scores also exist. Without a gradient, the layer keeps none of
// these tensors.
func (r *run) scores(i int, l *layer) error {
	n := l.scored
	if !l.grad {
		n += l.scored
		if r.values[l.value].element == 2 {
			n += l.scored / 2
		}
	}
	var before chunk
	if n > 0 {
		var err error
		if before, err = r.take(n, Activations); err != nil {
			return err
		}
	}
	if l.extra > 0 && l.grad {
		if err := r.extra(i, l.extra); err != nil {
			return err
		}
	}
	r.release(&before)
	return nil
}

// scoreGradients allocates the gradients of the output and the input of the softmax in
// unfused attention. Both have 32 bits.
func (r *run) scoreGradients(l *layer) error {
	if l.scored == 0 {
		return nil
	}
	c, err := r.take(2*l.scored, Activations)
	r.release(&c)
	return err
}
