package lifecycle

import (
	"carma/mapper/breaker"
	"carma/mapper/explain"
	"carma/mapper/fairshare"
	"carma/mapper/learn"
	"carma/mapper/ledger"
	"carma/mapper/place"
	"carma/mapper/preempt"
	"carma/mapper/queue"
	"carma/mapper/reserve"
)

// Lifecycle changes the phases of tasks outside of GPUs: from the submission to the queue,
// back into a queue after an attempt, and to the end.
type Lifecycle struct {
	*ledger.Ledger
	users     *fairshare.Users
	breakers  *breaker.Breakers
	queue     *queue.Queue
	reserve   *reserve.Reservations
	placer    *place.Placer
	preempter *preempt.Preempter
	learner   *learn.Learner
	explainer *explain.Explainer

	endings []ending // of this step, until FollowUp
}

// New returns a lifecycle over other parts. It holds nothing else between two steps.
func New(l *ledger.Ledger, us *fairshare.Users, br *breaker.Breakers, q *queue.Queue, rs *reserve.Reservations, pl *place.Placer, pre *preempt.Preempter, ln *learn.Learner, ex *explain.Explainer) *Lifecycle {
	return &Lifecycle{Ledger: l, users: us, breakers: br, queue: q, reserve: rs, placer: pl, preempter: pre, learner: ln, explainer: ex}
}
