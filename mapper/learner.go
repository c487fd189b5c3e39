package mapper

import (
	"carma/mapper/fairshare"
	"carma/mapper/ledger"
)

// learner observes what tasks do, and updates the predictor, and the tasks that wait or
// run, accordingly.
type learner struct {
	*ledger.Ledger
	users     *fairshare.Users
	predictor *predictor
	queue     *schedulingQueue
	placer    *placer
	preempter *preempter
}
