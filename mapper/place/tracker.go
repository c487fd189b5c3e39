package place

import (
	"carma/mapper/ledger"
	"carma/mapper/predict"
	"carma/mapper/reserve"
)

// tracker knows which GPUs have changed since a scheduling cycle. It owns the state of the
// GPUs in the last cycle, and a clock that orders cycles and changes. It answers which GPUs
// must be asked again, which are short of memory, and what the GPUs can take at most.
type tracker struct {
	*ledger.Ledger
	predictor *predict.Predictor
	reserve   *reserve.Reservations
	scorer    *scorer
	predicts  bool // the policy places tasks by predictions

	clock int // incremented at each scheduling cycle, and at each change of a GPU within one
	began int // the clock when the cycle before its last change began
	dirty dirtySet
}

// drop has all GPUs checked in the next cycle.
func (tr *tracker) drop() { tr.clock, tr.began, tr.dirty = tr.clock+1, 0, dirtySet{} }
