package step

import "carma/configs/models"

// passes reports whether the gradients of the inputs equal the output's gradient, or are
// views of it.
func passes(kind string) bool {
	return kind == models.Add || kind == models.Concat || kind == models.View
}

// element returns the size of an element of the output, in bytes.
func (p *planner) element(l *models.Layer, from []int32) int64 {
	if l.Type == models.Embedding || l.Type == models.EmbeddingBag {
		if l.Bits >= 16 {
			return int64(l.Bits / 8)
		}
		return p.float()
	}
	largest := int64(0)
	for _, f := range from {
		largest = max(largest, p.values[f].element)
	}
	if l.NoAutocast {
		if l.Bits >= 16 && len(l.Params) > 0 {
			return int64(l.Bits / 8)
		}
		return min(max(largest, 2), 4)
	}
	if !p.autocast {
		return min(max(largest, 2), p.float())
	}
	if halves(l) {
		return 2
	}
	if full(l.Type) {
		return 4
	}
	return min(max(largest, 2), 4)
}

// workspace sets the size of the workspace of the layer's kernels.
func (p *planner) workspace(l *models.Layer, out *layer) {
	switch l.Type {
	case models.Convolution, models.ConvTranspose:
		p.convs = true
		area := int64(1)
		for _, k := range l.Kernel {
			area *= max(k, 1)
		}
		if area > 1 && l.Groups <= 1 {
			out.scratch = 1 // a dense convolution; the environment has the workspace's size
		}
	case models.Linear, models.MatMul, models.Attention, models.Recurrent:
		p.products = true
	}
}
