package preempt

import (
	"carma/mapper/ledger"
	"carma/mapper/place"
	"carma/mapper/predict"
	"carma/mapper/queue"
	"carma/mapper/reserve"
)

// Preempter takes GPUs from running tasks: it suspends them, or stops them so that they
// run again later. It finds the victims for a task that does not fit, and ends what was
// idle or ran longer than its slot.
type Preempter struct {
	*ledger.Ledger
	predictor *predict.Predictor
	queue     *queue.Queue
	reserve   *reserve.Reservations
	placer    *place.Placer
	*displacer

	// In the present scheduling cycle:
	swapsTried int
	before     int  // tasks that did not fit before the one for which preemption is tried
	released   bool // a nomination has ended: earlier tasks may fit now
}

// New returns a preempter over other parts. It holds nothing else between two steps.
func New(l *ledger.Ledger, pr *predict.Predictor, q *queue.Queue, rs *reserve.Reservations, pl *place.Placer) *Preempter {
	return &Preempter{Ledger: l, predictor: pr, queue: q, reserve: rs, placer: pl, displacer: &displacer{l, pr, q}}
}

// BeginCycle begins a scheduling cycle.
func (pre *Preempter) BeginCycle() { pre.released = false }

// Released reports whether a nomination has ended in this cycle, so that tasks that
// were rejected for it may fit now.
func (pre *Preempter) Released() bool { return pre.released }
