package step

import (
	"carma/configs/models"
	"carma/estimator/allocator"
)

// quantizedBlock is the number of values of a 4-bit matrix that share an 8-bit scale. 256
// of these scales share a 32-bit scale (QLoRA, arXiv 2305.14314, section 3). The scales of
// an 8-bit matrix, one for each row, are negligible.
const quantizedBlock = 64

// none stands for no weight or no storage.
const none = int32(-1)

type weight struct {
	bytes     int64
	element   int64 // bytes of one number, at least 1
	trainable bool
	block     int   // block of the weight's layer, or 0
	rows      int64 // number of rows of a matrix, or 0 for another weight
	table     bool  // a token embedding
}

// hidden reports whether a weight is a matrix within a block. Muon updates such weights.
func (w *weight) hidden() bool { return w.rows > 0 && w.block > 0 && !w.table }

// numbers returns the number of values in the weight.
func (w *weight) numbers() int64 { return w.bytes / max(w.element, 1) }

// addWeights plans the parameters of a layer.
func (p *planner) addWeights(i int, l *models.Layer, out *layer, split bool) error {
	out.weights = p.list[:0]
	for k, n := range l.Params {
		if n < 0 || n > allocator.MaxRequest/16 {
			return errAt(i, l, "%d parameters are out of range", n)
		}
		rows := int64(0)
		if k == 0 {
			rows = p.matrix(i, l, n)
		}
		if split {
			n, rows = p.parted(n), p.parted(rows)
		}
		if l.Tied {
			out.cast += p.copied(n, l)
			out.tied = p.owner(n)
			continue
		}
		w := p.stored(n, l)
		w.trainable = w.trainable && !l.Frozen && p.train.Optimizer != models.NoOptimizer
		w.block = l.Block
		if k == 0 {
			w.rows, w.table = rows, l.Type == models.Embedding
		}
		out.weights = append(out.weights, int32(len(p.weights)))
		p.weights = append(p.weights, w)
		if l.Bits == 4 || l.Bits == 8 {
			p.quantized(l, out, n)
			continue
		}
		out.cast += p.copied(n, l)
	}
	p.list, out.weights = out.weights, p.listed(out.weights)
	return nil
}

// matrix returns the number of rows of a layer's first parameter, which has n numbers. It
// returns 0 if the parameter is not a single matrix, as for experts with a matrix each.
func (p *planner) matrix(i int, l *models.Layer, n int64) int64 {
	if len(l.Out) == 0 {
		return 0
	}
	width := l.Out[len(l.Out)-1]
	switch l.Type {
	case models.Embedding:
		return n / max(width, 1)
	case models.Linear:
		if in := p.shape(i, l); len(in) > 0 && in[len(in)-1]*width == n {
			return width
		}
	}
	return 0
}

// shape returns the shape of the first input of layer i.
func (p *planner) shape(i int, l *models.Layer) []int64 {
	at := i - 1
	if len(l.Inputs) > 0 {
		at = l.Inputs[0]
	}
	switch {
	case at >= 0:
		return p.config.Layers[at].Out
	case -at-1 < len(p.config.Inputs):
		return p.config.Inputs[-at-1].Shape
	}
	return nil
}

// owner returns the weight of n numbers that a tied layer shares. It is the first trained
// token embedding of n numbers, because the layers do not identify it, or none if there
// is no such embedding.
func (p *planner) owner(n int64) int32 {
	for i := range p.weights {
		if w := &p.weights[i]; w.table && w.trainable && w.numbers() == n {
			return int32(i)
		}
	}
	return none
}

// copied returns the bytes of the 16-bit copy that autocast makes of n numbers of a weight.
// Gathered weights need no copy, because they are gathered in 16 bits.
func (p *planner) copied(n int64, l *models.Layer) int64 {
	if p.train.Precision != models.AMP || l.NoAutocast || l.Bits == 16 || gathers(p.train.Parallel) || l.Type != models.Linear && l.Type != models.Convolution && l.Type != models.Recurrent {
		return 0
	}
	return 2 * n
}

// stored returns the weight for a parameter of n numbers that layer l stores.
func (p *planner) stored(n int64, l *models.Layer) weight {
	switch l.Bits {
	case 4:
		blocks := (n + quantizedBlock - 1) / quantizedBlock
		return weight{bytes: (n+1)/2 + blocks + blocks/64, element: 1}
	case 8:
		return weight{bytes: n, element: 1}
	case 16, 32:
		return weight{bytes: n * int64(l.Bits/8), element: int64(l.Bits / 8), trainable: true}
	}
	return weight{bytes: n * p.float(), element: p.float(), trainable: true}
}

// follow allocates the moving average of the trained weights (EMA).
func (r *run) follow() error {
	for i := range r.weights {
		w := &r.weights[i]
		if !w.trainable {
			continue
		}
		if _, err := r.take(4*w.numbers()/r.weightShards(), Weights); err != nil {
			return err
		}
	}
	return nil
}

// partial is the gradient of a tied weight until the backward pass has run all layers that
// share the weight.
type partial struct {
	chunk
	// view is set if the gradient is the transposed result of a product. PyTorch adds to
	// such a gradient in new memory, and to other gradients in place.
	view bool
}

// sum adds a gradient to the partial gradient waits, if there is one, and clears waits.
func (r *run) sum(waits *partial, c chunk) (chunk, error) {
	old := *waits
	*waits = partial{}
	switch {
	case !old.held:
		waits.view = old.view
		return c, nil
	case !old.view:
		r.release(&c)
		return old.chunk, nil
	}
	s, err := r.take(c.bytes, Gradients)
	r.release(&old.chunk)
	r.release(&c)
	return s, err
}
