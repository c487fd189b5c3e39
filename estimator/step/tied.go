package step

// partial is the gradient of a tied weight while layers that share it are still to
// come.
type partial struct {
	chunk
	// view: it is the transposed result of a product. PyTorch adds to such a gradient
	// in new memory; to others in place.
	view bool
}

// sum adds a gradient to one that waits, if there is one, and takes that away.
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
