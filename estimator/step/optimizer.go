package step

import "carma/configs/models"

// statesOf is how many tensors of the size of a weight an optimizer keeps for
// it, in quarters of one.
func statesOf(o models.Optimizer) int64 {
	switch o {
	case models.SGD, models.NoOptimizer, models.Adafactor:
		return 0 // Adafactor's sums of rows and columns are small
	case models.SGDMomentum, models.RMSprop, models.Adagrad, models.Lion:
		return 4
	case models.Adam8bit:
		return 2
	}
	return 8
}

// copies tells whether the optimizer's step holds a copy of all weights at
// once (foreach), of one at a time, or none.
func (r *run) copies() (all, one bool) {
	switch r.train.Optimizer {
	case models.SGD, models.SGDMomentum, models.NoOptimizer, models.Adam8bit:
		return false, false
	}
	switch r.train.Implementation {
	case "fused":
		return false, false
	case "for-loop":
		return false, true
	}
	return true, false
}

func (r *run) weightShards() int64 {
	if r.train.Parallel == models.ZeRO3 {
		return r.shards
	}
	return 1
}

func (r *run) gradShards() int64 {
	if p := r.train.Parallel; p == models.ZeRO2 || p == models.ZeRO3 {
		return r.shards
	}
	return 1
}

// zeroGrad sets the gradients to none, as optimizers do by default.
func (r *run) zeroGrad() { r.releaseAll(r.gradient) }

// optimize runs one step of the optimizer.
func (r *run) optimize() error {
	if !r.started {
		if err := r.start(); err != nil {
			return err
		}
		r.started = true
	}
	all, one := r.copies()
	held := make([]chunk, 0, len(r.weights))
	for _, w := range r.weights {
		if !w.trainable || !all && !one {
			continue
		}
		c, err := r.take(w.bytes/r.shards, States)
		if err != nil {
			return err
		}
		if one {
			r.release(&c)
			continue
		}
		held = append(held, c)
	}
	r.releaseAll(held)
	return nil
}

// start allocates the optimizer's states, and the full-precision copy that
// ZeRO keeps of 16-bit weights.
func (r *run) start() error {
	states := statesOf(r.train.Optimizer)
	for _, w := range r.weights {
		if !w.trainable {
			continue
		}
		for quarters := states; quarters > 0; quarters -= 4 {
			c, err := r.take(w.bytes*min(quarters, 4)/4/r.shards, States)
			if err != nil {
				return err
			}
			r.state = append(r.state, c)
		}
	}
	return nil
}
