package mapper

import (
	"fmt"
	"slices"

	"carma/mapper/ledger"
	"carma/mapper/model"
	"carma/mapper/predict"
	"carma/mapper/queue"
)

// reservations holds what is reserved: GPUs for users at later times, and GPUs or host
// memory for the first task that does not fit. It answers whether a task may use the
// memory of a GPU or a machine beside them.
type reservations struct {
	*ledger.Ledger
	predictor *predict.Predictor
	queue     *queue.Queue

	list []*model.Reservation // in order of number
	last int                  // the highest number so far
	head headReservation
}

func newReservations(l *ledger.Ledger, pr *predict.Predictor, q *queue.Queue) *reservations {
	return &reservations{Ledger: l, predictor: pr, queue: q}
}

// clone returns a copy for copies of the ledger, the predictor and the queue.
func (rs *reservations) clone(l *ledger.Ledger, pr *predict.Predictor, q *queue.Queue) *reservations {
	c := newReservations(l, pr, q)
	c.list, c.last = make([]*model.Reservation, len(rs.list)), rs.last
	for i, r := range rs.list {
		c.list[i] = new(*r)
	}
	c.head = rs.head.clone()
	return c
}

// setHead reserves GPUs for a task in place of the present head reservation.
func (rs *reservations) setHead(h headReservation) { rs.head = h }

// dropHead ends the head reservation if it is for a task.
func (rs *reservations) dropHead(id model.TaskID) {
	if rs.head.Task == id {
		rs.head = headReservation{}
	}
}

// headReservation returns the head reservation, or the zero one if there is none.
func (rs *reservations) headReservation() headReservation { return rs.head }

// reserving reports whether there is any reservation for a user.
func (rs *reservations) reserving() bool { return len(rs.list) > 0 }

// drop ends some reservations, and reports whether there were any of them.
func (rs *reservations) drop(which func(*model.Reservation) bool) bool {
	n := len(rs.list)
	rs.list = slices.DeleteFunc(rs.list, which)
	return len(rs.list) < n
}

// reservationsSnapshot is the section of a snapshot about reservations.
type reservationsSnapshot struct {
	Reserved []*model.Reservation `json:"reserved,omitempty"`
	LastRes  int                  `json:"last_reservation,omitempty"`
	Kept     headReservation      `json:"hold"`
}

func (rs *reservations) snapshot() reservationsSnapshot {
	return reservationsSnapshot{Reserved: rs.list, LastRes: rs.last, Kept: rs.head}
}

func (rs *reservations) restore(snap reservationsSnapshot) error {
	for _, r := range snap.Reserved {
		if r == nil || r.ID < 1 || r.ID > snap.LastRes || len(r.GPUs) == 0 {
			return fmt.Errorf("a reservation is empty or has a number that was not given")
		}
	}
	rs.list, rs.last, rs.head = snap.Reserved, snap.LastRes, snap.Kept
	return nil
}
