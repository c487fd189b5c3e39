package step

import "carma/configs/models"

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
	if r.fsdp() {
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

// unshard allocates what lives through the forward and the backward pass besides the
// GPU's own parts.
func (r *run) unshard() ([]chunk, error) {
	if r.shards < 2 {
		return nil, nil
	}
	if !r.gathers() {
		return nil, nil
	}
	if r.fsdp() {
		return nil, r.gatherRest()
	}
	return nil, r.putTogether()
}
