package step

import "carma/configs/models"

// zero is the memory of DeepSpeed 0.19's ZeRO besides each GPU's part of states and weights
// (runtime/zero/stage_1_and_2.py, stage3.py). Gradients are collected in a bucket of a
// fixed size, which is reduced over the GPUs. The part that a GPU updates is then copied to
// a separate buffer. Stages 2 and 3 collect each gradient as soon as it exists, stage 1
// collects all at the end of the step's last backward pass. The bucket of stages 1 and 2 is
// allocated with the first gradient and freed after the last. The bucket and the buffer of
// stage 3 stay. For the step, a GPU's gradients are concatenated to one vector, which is
// converted to 32 bits, and the optimizer updates one vector.
type zero struct {
	plan *Plan
	use  *usage

	bucket, part chunk
	collected    int64 // numbers in the bucket
}

// reduceBucket is the number of gradient values that DeepSpeed collects before it reduces
// them over the GPUs (reduce_bucket_size).
const reduceBucket = 500_000_000

// stage returns the stage of ZeRO, or 0 if it is not used.
func (p *Plan) stage() int {
	if p.shards < 2 {
		return 0
	}
	switch p.train.Parallel {
	case models.ZeRO1:
		return 1
	case models.ZeRO2:
		return 2
	case models.ZeRO3:
		return 3
	}
	return 0
}

// halves returns the bytes of a number in DeepSpeed's buffers. In a 16-bit training,
// DeepSpeed converts all weights to 16 bits.
func (p *Plan) halves() int64 {
	if in := p.train.Precision; in == models.BF16 || in == models.FP16 {
		return 2
	}
	return 4
}

// partition returns the bytes of the GPU's part of all trained weights, in their stored
// type.
func (p *Plan) partition() (bytes int64) {
	for i := range p.weights {
		if w := &p.weights[i]; w.trainable {
			bytes += w.bytes / p.shards
		}
	}
	return bytes
}

// lasting allocates the buffers that live during the whole training: for stage 3 the bucket
// and the buffer of gradients, and for other stages with offloaded states a buffer of the
// size of the largest gradient.
func (z *zero) lasting() (err error) {
	var largest int64
	for i := range z.plan.weights {
		if w := &z.plan.weights[i]; w.trainable {
			largest = max(largest, w.numbers()*z.plan.halves())
		}
	}
	switch stage := z.plan.stage(); {
	case stage == 3:
		if z.bucket, err = z.use.take(reduceBucket*z.plan.halves(), Gradients); err != nil || z.plan.hostStates() {
			return err
		}
		z.part, err = z.use.take(z.plan.partition(), Gradients)
	case stage > 0 && z.plan.hostStates():
		_, err = z.use.take(largest, Gradients)
	}
	return err
}

// collect adds a whole gradient to the bucket.
func (z *zero) collect(w *weight, c *chunk) (err error) {
	if !z.bucket.held {
		if z.bucket, err = z.use.take(reduceBucket*z.plan.halves(), Gradients); err != nil {
			return err
		}
	}
	if z.plan.stage() == 1 {
		return nil
	}
	return z.fill(w, c)
}

// fill copies a gradient into the bucket. If the bucket is full, fill empties it first.
func (z *zero) fill(w *weight, c *chunk) error {
	if n := w.numbers(); z.collected+n > reduceBucket {
		if err := z.scatter(); err != nil {
			return err
		}
	}
	z.collected += w.numbers()
	z.use.release(c)
	return nil
}

// scatter reduces the bucket over the GPUs, in a copy of the bucket.
func (z *zero) scatter() (err error) {
	n := z.collected
	z.collected = 0
	if err := z.use.temporary(n*z.plan.halves(), Gradients); err != nil || z.plan.hostStates() || z.part.held {
		return err
	}
	z.part, err = z.use.take(z.plan.partition(), Gradients)
	return err
}

// collected ends a backward pass. last is set for the last pass of a step.
func (r *run) collected(last bool) error {
	stage, z := r.stage(), &r.zero
	switch {
	case stage == 0 || stage == 1 && !last:
		return nil
	case stage == 1:
		for i := len(r.weights) - 1; i >= 0; i-- {
			if !r.gradient[i].held {
				continue
			}
			if err := r.zero.fill(&r.weights[i], &r.gradient[i]); err != nil {
				return err
			}
		}
	}
	r.releaseAll(r.live.whole)
	err := r.zero.scatter()
	if stage < 3 {
		r.release(&z.bucket)
	}
	return err
}

// flatten allocates the 32-bit vector of a GPU's gradients for the optimizer's step.
func (r *run) flatten() error {
	if r.stage() == 0 {
		return nil
	}
	n := r.partition()
	flat, err := r.take(n, Gradients)
	if err != nil {
		return err
	}
	var wide int64
	for i := range r.weights {
		if w := &r.weights[i]; w.trainable {
			wide += 4 * w.numbers() / r.shards
		}
	}
	c, err := r.take(wide, Gradients)
	r.release(&flat)
	if r.stage() < 3 {
		r.release(&r.zero.part)
	}
	r.held = append(r.held, c)
	return err
}

// mostLive is the largest number of parameters that ZeRO 3 gathers. From the second step
// on, ZeRO 3 prefetches up to this number (stage3_max_live_parameters), and keeps a weight
// that is used again within this distance (stage3_max_reuse_distance).
const mostLive = 1_000_000_000

// live contains the weights that ZeRO 3 has gathered. For simplicity the simulation
// gathers the last weights of the network.
type live struct {
	plan *Plan
	use  *usage

	whole []chunk // by weight
	bytes int64
}

// putTogether begins a pass of ZeRO 3 and gathers weights.
func (v *live) putTogether() error {
	*v = live{plan: v.plan, use: v.use, whole: make([]chunk, len(v.plan.weights))}
	var numbers int64
	for i := len(v.plan.weights) - 1; i >= 0; i-- {
		w := &v.plan.weights[i]
		if numbers += w.numbers(); numbers > mostLive && i < len(v.plan.weights)-1 {
			break
		}
		c, err := v.use.take(v.plan.gathered(w), Weights)
		if err != nil {
			return err
		}
		v.whole[i] = c
		v.bytes += c.bytes
	}
	return nil
}

// passed frees gathered weights after the gradients of layer l. It frees the part that
// exceeds the weights of the layers whose gradients are still to be computed.
func (v *live) passed(l *layer) {
	if v.plan.stage() != 3 || len(l.weights) == 0 {
		return
	}
	var left int64
	for i := range v.plan.weights[:l.weights[0]] {
		left += v.plan.gathered(&v.plan.weights[i])
	}
	for i := len(v.whole) - 1; i >= 0 && v.bytes > left; i-- {
		if c := &v.whole[i]; c.held {
			v.bytes -= c.bytes
			v.use.release(c)
		}
	}
}
