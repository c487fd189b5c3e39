package step

// zeroGrad sets the gradients to none, as optimizers do by default.
func (r *run) zeroGrad() { r.releaseAll(r.gradient) }

// optimize runs one step of the optimizer.
func (r *run) optimize() error {
	if r.hostStates() {
		return nil
	}
	if !r.started {
		if err := r.start(); err != nil {
			return err
		}
		r.started = true
	}
	r.held = r.held[:0]
	if err := r.flatten(); err != nil {
		return err
	}
	for i := range r.weights {
		w := r.updated(&r.weights[i])
		if !w.trainable {
			continue
		}
		if r.train.Masters && w.element != r.weights[i].element { // its gradient in 32 bits
			c, err := r.take(w.bytes/r.shards, Gradients)
			if err != nil {
				return err
			}
			r.held = append(r.held, c)
		}
		bytes, together := temporary(&r.train, &w)
		c, err := r.take(bytes/r.shards, States)
		if err != nil {
			return err
		}
		if together || r.stage() > 0 && r.train.Implementation == "for-loop" {
			r.held = append(r.held, c)
		} else {
			r.release(&c)
		}
	}
	r.releaseAll(r.held)
	return nil
}

// updated returns the weight that the optimizer updates. With ZeRO this is the
// full-precision copy of a 16-bit weight.
func (p *Plan) updated(w *weight) weight {
	if u := *w; p.masters() && w.element < 4 {
		u.bytes, u.element = 4*w.numbers(), 4
		return u
	}
	return *w
}

// start allocates the optimizer's states. With ZeRO it also allocates the
// full-precision copies of 16-bit weights.
func (r *run) start() error {
	for i := range r.weights {
		w := r.updated(&r.weights[i])
		if !w.trainable {
			continue
		}
		states := statesOf(r.train.Optimizer, &w)
		r.paged += pagedOf(r.train.Optimizer, &w) / r.shards
		if w.element != r.weights[i].element || r.stage() > 0 { // DeepSpeed copies 32-bit weights too
			states = append(states, w.bytes)
		}
		for _, bytes := range states {
			c, err := r.take(bytes/r.shards, States)
			if err != nil {
				return err
			}
			r.state = append(r.state, c)
		}
	}
	return nil
}
