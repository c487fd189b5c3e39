package step

import "carma/configs/models"

// reduceBucket is how many numbers of gradients DeepSpeed collects before it adds
// them up over the GPUs (reduce_bucket_size).
const reduceBucket = 500_000_000

// sharded reports whether each GPU has only its part of the optimizer's states.
func sharded(p models.Parallel) bool {
	switch p {
	case models.ZeRO1, models.ZeRO2, models.ZeRO3, models.FSDP, models.FSDPGrad:
		return true
	}
	return false
}

// masters reports whether the optimizer updates full-precision copies of 16-bit
// weights. DeepSpeed does. FSDP updates the weights as they are; its mixed precision
// is amp here: FP32 weights that are gathered in 16 bits.
func (r *run) masters() bool {
	p := r.train.Parallel
	return r.train.Masters || p == models.ZeRO1 || p == models.ZeRO2 || p == models.ZeRO3
}

// gathers reports whether each GPU has only its part of the weights between the
// steps, and they are put together where they are used.
func gathers(p models.Parallel) bool {
	return p == models.ZeRO3 || p == models.FSDP || p == models.FSDPGrad
}

func (r *run) gathers() bool { return gathers(r.train.Parallel) }

func (r *run) weightShards() int64 {
	if r.gathers() {
		return r.shards
	}
	return 1
}

func (r *run) gradShards() int64 {
	if r.train.Parallel == models.ZeRO2 || r.gathers() {
		return r.shards
	}
	return 1
}

// gathered is the size of a weight that is put together, in bytes.
func (r *run) gathered(w *weight) int64 {
	if r.train.Precision == models.AMP && w.element > 1 {
		return 2 * w.numbers()
	}
	return w.bytes
}

// together is the memory for weights and gradients that are put together, in bytes.
// The weights outside of blocks stay together for the whole step. With FSDPGrad
// (SHARD_GRAD_OP) all do. Otherwise there are those of the present block and of the
// one that is fetched meanwhile. Gradients are those of one block, before they are
// added up over the GPUs.
func (r *run) together() (weights, gradient int64) {
	sizes, grads := map[int]int64{}, map[int]int64{}
	for i := range r.weights {
		w := &r.weights[i]
		sizes[w.block] += r.gathered(w)
		if w.trainable {
			grads[w.block] += r.gathered(w)
		}
	}
	for _, n := range grads {
		gradient = max(gradient, n)
	}
	var first, second, blocks int64
	for block, n := range sizes {
		switch {
		case block == 0:
			continue
		case n > first:
			first, second = n, first
		case n > second:
			second = n
		}
		blocks += n
	}
	if r.train.Parallel == models.FSDPGrad {
		return sizes[0] + blocks, gradient
	}
	return sizes[0] + first + second, gradient
}

// unshard allocates what lives through the forward and the backward pass besides the
// GPU's own parts.
func (r *run) unshard() ([]chunk, error) {
	if r.shards < 2 {
		return nil, nil
	}
	if !r.gathers() {
		return r.bucket()
	}
	if r.fsdp() {
		return nil, r.gatherRest()
	}
	n, gradient := r.together()
	weights, err := r.take(n, Weights)
	if err != nil {
		return nil, err
	}
	grads, err := r.take(gradient, Gradients)
	return []chunk{weights, grads}, err
}

// bucket allocates the buffer in which ZeRO 1 and 2 collect gradients.
func (r *run) bucket() ([]chunk, error) {
	var n, element int64
	for i := range r.weights {
		if w := &r.weights[i]; w.trainable {
			n += w.numbers()
			element = max(element, w.element)
		}
	}
	c, err := r.take(element*min(n, reduceBucket), Gradients)
	return []chunk{c}, err
}
