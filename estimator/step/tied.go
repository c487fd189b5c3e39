package step

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
