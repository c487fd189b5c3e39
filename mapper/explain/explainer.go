package explain

import (
	"carma/mapper/breaker"
	"carma/mapper/fairshare"
	"carma/mapper/ledger"
	"carma/mapper/place"
	"carma/mapper/queue"
	"carma/mapper/reserve"
)

// Explainer says whether a request can ever run here, and why a task does not run now. It
// changes nothing.
type Explainer struct {
	*ledger.Ledger
	users    *fairshare.Users
	breakers *breaker.Breakers
	queue    *queue.Queue
	reserve  *reserve.Reservations
	placer   *place.Placer
}

// New returns an explainer over other parts. It holds nothing else.
func New(l *ledger.Ledger, us *fairshare.Users, br *breaker.Breakers, q *queue.Queue, rs *reserve.Reservations, pl *place.Placer) *Explainer {
	return &Explainer{l, us, br, q, rs, pl}
}
