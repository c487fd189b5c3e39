package step

import "carma/configs/models"

const crossEntropy = models.CrossEntropy

// loss appends the cross-entropy if the configuration ends without a loss.
func (p *planner) loss() {
	if len(p.layers) == 0 {
		return
	}
	last := &p.layers[len(p.layers)-1]
	if last.kind == models.CrossEntropy || last.kind == models.Loss {
		return
	}
	v := value{storage: p.store(4), bytes: 4, element: 4, grad: last.grad}
	p.layers = append(p.layers, layer{kind: models.CrossEntropy, inputs: []int32{last.value}, value: int32(len(p.values)), out: 4, grad: last.grad, tied: none, attached: none})
	p.values = append(p.values, v)
}

// wide returns the size in bytes of a loss's logits in the type that the loss computes
// with. The cross-entropy computes in 32 bits: most causal language models convert 16-bit
// logits before the loss, and for other models autocast converts the softmax (see
// [run.logSoftmax]).
func (r *run) wide(l *layer) int64 {
	value := &r.values[l.inputs[0]]
	if value.element == 2 && !l.narrow {
		return 2 * value.bytes
	}
	return value.bytes
}

// logSoftmax runs the log-softmax of the cross-entropy of layer i. Its output is kept. The
// 32-bit copy of 16-bit logits is not kept.
func (r *run) logSoftmax(i int, logits int32) error {
	n := r.wide(&r.layers[i])
	var converted chunk
	if r.layers[i].mixed && n > r.values[logits].bytes {
		// The cross-entropy requests the softmax in the 16 bits of its logits. So autocast
		// does not convert the softmax, but converts its output for the loss
		// (ATen/native/LossNLL.cpp). Both are kept.
		return r.extra(i, n+r.values[logits].bytes)
	}
	if n > r.values[logits].bytes {
		var err error
		if converted, err = r.take(n, Activations); err != nil {
			return err
		}
	}
	err := r.extra(i, n)
	r.release(&converted)
	return err
}

// lossGradient begins the backward pass. The cross-entropy allocates the gradient of the
// log-softmax, then the gradient of its input, which is converted back for 16-bit logits.
func (r *run) lossGradient(l *layer) error {
	v := l.inputs[0]
	if l.chunks != nil {
		c, err := r.take(r.values[v].bytes, Activations)
		if err != nil {
			return err
		}
		return r.accumulate(v, r.piece(c))
	}
	if l.kind != crossEntropy {
		return r.otherLossGradient(v)
	}
	n := r.wide(l)
	inner, err := r.take(n, Activations)
	if err != nil {
		return err
	}
	if l.mixed && n > r.values[v].bytes {
		r.release(&inner) // inner has the size of the 16-bit gradients of the softmax's output and input
		gradient, err := r.take(r.values[v].bytes, Activations)
		if err != nil {
			return err
		}
		return r.accumulate(v, r.piece(gradient))
	}
	gradient, err := r.take(n, Activations)
	if err != nil {
		return err
	}
	r.release(&inner)
	if n > r.values[v].bytes {
		narrow, err := r.take(r.values[v].bytes, Activations)
		if err != nil {
			return err
		}
		r.release(&gradient)
		gradient = narrow
	}
	return r.accumulate(v, r.piece(gradient))
}

// otherLossGradient begins the backward pass of another loss. Under autocast it is
// computed in 32 bits, and converted for 16-bit values.
func (r *run) otherLossGradient(v int32) error {
	var wide chunk
	if r.values[v].element == 2 && r.train.Precision == models.AMP {
		var err error
		if wide, err = r.take(2*r.values[v].bytes, Activations); err != nil {
			return err
		}
	}
	c, err := r.take(r.values[v].bytes, Activations)
	if err != nil {
		return err
	}
	r.release(&wide)
	return r.accumulate(v, r.piece(c))
}
