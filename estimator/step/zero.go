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
	bucket, part chunk
	collected    int64 // numbers in the bucket
}

// reduceBucket is the number of gradient values that DeepSpeed collects before it reduces
// them over the GPUs (reduce_bucket_size).
const reduceBucket = 500_000_000

// stage returns the stage of ZeRO, or 0 if it is not used.
func (r *run) stage() int {
	if r.shards < 2 {
		return 0
	}
	switch r.train.Parallel {
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
func (r *run) halves() int64 {
	if p := r.train.Precision; p == models.BF16 || p == models.FP16 {
		return 2
	}
	return 4
}

// partition returns the bytes of the GPU's part of all trained weights, in their stored
// type.
func (r *run) partition() (bytes int64) {
	for i := range r.weights {
		if w := &r.weights[i]; w.trainable {
			bytes += w.bytes / r.shards
		}
	}
	return bytes
}

// lasting allocates the buffers that live during the whole training: for stage 3 the bucket
// and the buffer of gradients, and for other stages with offloaded states a buffer of the
// size of the largest gradient.
func (r *run) lasting() (err error) {
	var largest int64
	for i := range r.weights {
		if w := &r.weights[i]; w.trainable {
			largest = max(largest, w.numbers()*r.halves())
		}
	}
	switch stage := r.stage(); {
	case stage == 3:
		if r.zero.bucket, err = r.take(reduceBucket*r.halves(), Gradients); err != nil || r.hostStates() {
			return err
		}
		r.zero.part, err = r.take(r.partition(), Gradients)
	case stage > 0 && r.hostStates():
		_, err = r.take(largest, Gradients)
	}
	return err
}

// collect adds a whole gradient to the bucket.
func (r *run) collect(w *weight, c *chunk) (err error) {
	z := &r.zero
	if !z.bucket.held {
		if z.bucket, err = r.take(reduceBucket*r.halves(), Gradients); err != nil {
			return err
		}
	}
	if r.stage() == 1 {
		return nil
	}
	return r.fill(w, c)
}

// fill copies a gradient into the bucket. If the bucket is full, fill empties it first.
func (r *run) fill(w *weight, c *chunk) error {
	z := &r.zero
	if n := w.numbers(); z.collected+n > reduceBucket {
		if err := r.scatter(); err != nil {
			return err
		}
	}
	z.collected += w.numbers()
	r.release(c)
	return nil
}

// scatter reduces the bucket over the GPUs, in a copy of the bucket.
func (r *run) scatter() (err error) {
	n := r.zero.collected
	r.zero.collected = 0
	if err := r.temporary(n*r.halves(), Gradients); err != nil || r.hostStates() || r.zero.part.held {
		return err
	}
	r.zero.part, err = r.take(r.partition(), Gradients)
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
			if err := r.fill(&r.weights[i], &r.gradient[i]); err != nil {
				return err
			}
		}
	}
	r.releaseAll(r.live.whole)
	err := r.scatter()
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
