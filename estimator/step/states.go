package step

import "carma/configs/models"

// Sizes of bitsandbytes 0.50, as the transformers library's trainer uses it
// (optim/optimizer.py; trainer.py registers tables of tokens for 32 bits).
const (
	// blockwise is the number of values that share one scale of 4 bytes in 8-bit states.
	blockwise = 256
	// leastIn8 is the size, in numbers, of the smallest weight with 8-bit states.
	leastIn8 = 4096
	// leastPaged is the size, in numbers, of the smallest weight with paged states. Paged
	// states are in unified memory, which is on the GPU while the GPU has space, otherwise
	// on the host.
	leastPaged = 100_000
)

// statesOf returns the sizes of the tensors that an optimizer keeps for a weight, in
// bytes, without paged ones.
func statesOf(o models.Optimizer, w *weight) []int64 {
	switch o {
	case models.SGD, models.NoOptimizer:
		return nil
	case models.Adafactor:
		return factored(w)
	case models.SGDMomentum, models.RMSprop, models.Adagrad:
		return []int64{w.bytes}
	case models.Muon:
		if w.hidden() {
			return []int64{w.bytes}
		}
	case models.Lion:
		return []int64{4 * w.numbers()}
	case models.Lion8bit:
		return []int64{in8(w)}
	case models.Adam8bit, models.AdamW8bit:
		return []int64{in8(w), in8(w)}
	case models.PagedAdamW, models.PagedAdamW8:
		if w.numbers() >= leastPaged {
			return nil
		}
		return []int64{4 * w.numbers(), 4 * w.numbers()}
	}
	return []int64{w.bytes, w.bytes}
}

// pagedOf returns the bytes of a weight's paged states.
func pagedOf(o models.Optimizer, w *weight) int64 {
	switch {
	case w.numbers() < leastPaged:
		return 0
	case o == models.PagedAdamW:
		return 8 * w.numbers()
	case o == models.PagedAdamW8:
		return 2 * in8(w)
	}
	return 0
}

// in8 returns the bytes of one state of an 8-bit optimizer. Small weights and token
// embeddings have states of 32 bits.
func in8(w *weight) int64 {
	n := w.numbers()
	if n < leastIn8 || w.table {
		return 4 * n
	}
	return n + 4*((n+blockwise-1)/blockwise)
}

// factored returns the sizes of Adafactor's states: the sums of a matrix's rows and of its
// columns, or for a vector one state of the vector's size (transformers.optimization.Adafactor
// without the first moment, which the trainer disables).
func factored(w *weight) []int64 {
	if w.rows == 0 {
		return []int64{4 * w.numbers()}
	}
	return []int64{4 * w.rows, 4 * (w.numbers() / w.rows)}
}

// temporary returns the memory that the optimizer's step holds for a weight in addition
// to its states, in bytes. together is set if the step holds it for all weights at once
// (foreach), otherwise for one weight at a time.
func temporary(t *models.Train, w *weight) (bytes int64, together bool) {
	switch t.Optimizer {
	case models.SGD, models.SGDMomentum, models.NoOptimizer:
		return 0, false
	case models.Adam8bit, models.AdamW8bit, models.PagedAdamW, models.PagedAdamW8, models.Lion, models.Lion8bit:
		return 0, false // bitsandbytes has one kernel for a step
	case models.Adafactor:
		if t.Implementation == "for-loop" {
			return w.bytes, false // torch.optim.Adafactor: the update
		}
		// The squares and the update; for a 16-bit weight also 32-bit copies of the weight
		// and its gradient.
		if w.element == 2 {
			return 4 * 4 * w.numbers(), false
		}
		return 2 * w.bytes, false
	case models.Muon:
		if w.hidden() {
			return orthogonal(w), false
		}
	}
	switch t.Implementation {
	case "fused":
		return 0, false
	case "for-loop":
		return w.bytes, false
	}
	return w.bytes, true
}

// orthogonal returns the memory that Muon's Newton-Schulz iteration holds for a matrix. It
// is the update and, in 16 bits, the larger of two sets: the old and the new iterate with
// two square products of the shorter side, or one iterate with three (torch.optim.Muon).
func orthogonal(w *weight) int64 {
	n := w.numbers()
	side := min(w.rows, n/w.rows)
	square := 2 * side * side
	return w.bytes + max(2*2*n+2*square, 2*n+3*square)
}
