package step

import (
	"math/bits"

	"carma/configs/models"
)

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
func (p *Plan) wide(l *layer) int64 {
	value := &p.values[l.inputs[0]]
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
		return r.flows.accumulate(v, r.flows.piece(c))
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
		return r.flows.accumulate(v, r.flows.piece(gradient))
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
	return r.flows.accumulate(v, r.flows.piece(gradient))
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
	return r.flows.accumulate(v, r.flows.piece(c))
}

// chunked is a cross-entropy that never allocates the logits of all tokens. In the forward
// pass it multiplies the head with a chunk of rows at a time, and immediately computes the
// chunk's gradients (torch.nn.functional.linear_cross_entropy with its compact method;
// Liger's fused linear cross-entropy, arXiv 2410.10989, section 3.2, does the same). Sizes
// are in bytes.
type chunked struct {
	input   int64 // the gradient of the head's input
	head    int32 // the head's weight
	scratch int64 // logits of a chunk, in 32 bits and in the type of the head
}

// chunk plans the last cross-entropy in chunks, so that the logits of all tokens take no
// memory. The error names a layer between the head and the loss that prevents chunking.
func (p *planner) chunk(c *models.Config) error {
	if p.train.Loss != "chunked" {
		return nil
	}
	last := len(c.Layers) - 1
	if last < 0 || c.Layers[last].Type != models.CrossEntropy {
		return &models.Error{Field: "train.loss", What: "the network does not end with a cross-entropy, which chunked is about; leave it out"}
	}
	at := last
	for {
		from := p.layers[at].inputs[0] - int32(p.inputs)
		if from < 0 {
			return errAt(last, &c.Layers[last], "no linear layer before it, so it is not computed in chunks")
		}
		at = int(from)
		l := &c.Layers[at]
		p.flatten(&p.layers[at])
		if l.Type == models.Linear {
			p.layers[last].chunks = p.chunksOf(l, &p.layers[at])
			return nil
		}
		if l.Type != models.Copy && l.Type != models.View {
			return errAt(at, l, "is between the head and the loss, which is computed in chunks only right after the head; leave the loss full")
		}
	}
}

// flatten sets the memory of a layer of the logits to 0, because only chunks of them
// exist.
func (p *planner) flatten(l *layer) {
	v := &p.values[l.value]
	p.storages[v.storage].bytes, v.bytes, l.out, l.extra, l.kept = 0, 0, 0, 0, nil
}

// chunksOf sizes the chunks of a head. The logits of a chunk have about as many numbers as
// the head's whole input.
func (p *planner) chunksOf(l *models.Layer, head *layer) *chunked {
	in := p.values[head.inputs[0]]
	width := l.Out[len(l.Out)-1]
	rows := p.spread(models.Product(l.Out) / width * p.batch)
	narrow := max(in.bytes/max(in.element, 1)/max(rows, 1), 1)
	chunks := max((width+narrow-1)/narrow, 1)
	some := int64(1) << bits.Len64(uint64((rows+chunks-1)/chunks-1))
	weight := head.tied
	if len(head.weights) > 0 {
		weight = head.weights[0]
	}
	element := min(in.element, 4)
	if p.train.Precision == models.AMP {
		element = 2
	}
	each := int64(4)
	if element == 2 {
		each += 2
	}
	return &chunked{input: in.bytes / max(in.element, 1) * element, head: weight, scratch: some * width * each}
}

// chunkedLoss runs the cross-entropy of layer i with its gradients.
func (r *run) chunkedLoss(i int, c *chunked) error {
	if err := r.extra(i, c.input); err != nil {
		return err
	}
	if c.head != none && r.weights[c.head].trainable {
		if err := r.extra(i, min(r.weights[c.head].bytes, 4*r.weights[c.head].numbers())); err != nil {
			return err
		}
	}
	scratch, err := r.take(c.scratch, Activations)
	r.release(&scratch)
	return err
}
