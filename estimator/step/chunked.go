package step

import (
	"math/bits"

	"carma/configs/models"
)

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
