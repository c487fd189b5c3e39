package mapper

import (
	"carma/mapper/fairshare"
	"carma/mapper/ledger"
	"carma/mapper/place"
	"carma/mapper/predict"
	"carma/mapper/queue"
	"carma/mapper/reserve"
)

// preempter takes GPUs from running tasks: it suspends them, or stops them so that they
// run again later. It finds the victims for a task that does not fit, and ends what was
// idle or ran longer than its slot.
type preempter struct {
	*ledger.Ledger
	users     *fairshare.Users
	predictor *predict.Predictor
	queue     *queue.Queue
	reserve   *reserve.Reservations
	placer    *place.Placer

	// In the present scheduling cycle:
	swapsTried int
	before     int  // tasks that did not fit before the one for which preemption is tried
	released   bool // a nomination has ended: earlier tasks may fit now
}
