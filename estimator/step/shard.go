package step

import "carma/configs/models"

// sharded reports whether each GPU has only a part of the optimizer's states.
func sharded(p models.Parallel) bool {
	switch p {
	case models.ZeRO1, models.ZeRO2, models.ZeRO3, models.FSDP, models.FSDPGrad:
		return true
	}
	return false
}

// masters reports whether the optimizer updates full-precision copies of 16-bit weights.
// DeepSpeed does so. FSDP updates the weights themselves; its mixed precision is called
// amp here: FP32 weights that are gathered in 16 bits.
func (p *Plan) masters() bool {
	by := p.train.Parallel
	return p.train.Masters || by == models.ZeRO1 || by == models.ZeRO2 || by == models.ZeRO3
}

// gathers reports whether each GPU has only a part of the weights between the steps, so
// that they are gathered before use.
func gathers(p models.Parallel) bool {
	return p == models.ZeRO3 || p == models.FSDP || p == models.FSDPGrad
}

func (p *Plan) gathers() bool { return gathers(p.train.Parallel) }

func (p *Plan) weightShards() int64 {
	if p.gathers() {
		return p.shards
	}
	return 1
}

func (p *Plan) gradShards() int64 {
	if p.fsdp() {
		return p.shards
	}
	return 1
}

// gathered returns the size of a gathered weight, in bytes.
func (p *Plan) gathered(w *weight) int64 {
	if p.train.Precision == models.AMP && w.element > 1 {
		return 2 * w.numbers()
	}
	return w.bytes
}

// unshard allocates the memory that exists throughout the forward and the backward pass,
// in addition to the GPU's own parts.
func (r *run) unshard() ([]chunk, error) {
	if r.shards < 2 {
		return nil, nil
	}
	if !r.gathers() {
		return nil, nil
	}
	if r.fsdp() {
		return nil, r.gathering.gatherRest()
	}
	return nil, r.live.putTogether()
}
