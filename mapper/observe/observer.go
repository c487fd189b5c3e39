package observe

import (
	"carma/mapper/fairshare"
	"carma/mapper/ledger"
	"carma/mapper/place"
	"carma/mapper/predict"
	"carma/mapper/preempt"
)

// Observer enters in the ledger what is observed of GPUs and machines, and adapts the
// grants of running tasks to the memory that they use.
type Observer struct {
	*ledger.Ledger
	users     *fairshare.Users
	predictor *predict.Predictor
	placer    *place.Placer
	preempter *preempt.Preempter
}

// New returns an observer over other parts. It holds nothing else.
func New(l *ledger.Ledger, us *fairshare.Users, pr *predict.Predictor, pl *place.Placer, pre *preempt.Preempter) *Observer {
	return &Observer{l, us, pr, pl, pre}
}
