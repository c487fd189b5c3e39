package mapper

import (
	"fmt"
	"slices"

	"carma/mapper/fairshare"
	"carma/mapper/ledger"
	"carma/mapper/model"
	"carma/mapper/predict"
)

// schedulingQueue holds what decides in which order tasks are tried: the queues, the
// tasks held for others or for their group, the reservations, and the GPUs reserved for
// the first task that does not fit.
type schedulingQueue struct {
	*ledger.Ledger
	users     *fairshare.Users
	predictor *predict.Predictor

	waiting   queues                          // the waiting tasks
	followers map[model.TaskID][]model.TaskID // of each task, the held tasks that depend on it; look-up only; each list in order of number
	groups    map[string]*group               // look-up only
	// reservations are in order of number.
	reservations    []*model.Reservation
	lastReservation int
	head            headReservation
	reach           [2]int // the places in the recovery and the main queue that the last cycle reached; 0 is the end

	sums backlog // derived from the waiting tasks
}

func newSchedulingQueue(l *ledger.Ledger, us *fairshare.Users, pr *predict.Predictor) *schedulingQueue {
	q := &schedulingQueue{Ledger: l, users: us, predictor: pr, followers: map[model.TaskID][]model.TaskID{}, groups: map[string]*group{}}
	q.waiting.byPriority = l.Options().ByPriority()
	if l.Options().Fair() {
		q.waiting.turns = us
	}
	return q
}

// clone returns a copy for copies of the ledger, the users and the predictor.
func (q *schedulingQueue) clone(l *ledger.Ledger, us *fairshare.Users, pr *predict.Predictor) *schedulingQueue {
	c := newSchedulingQueue(l, us, pr)
	c.waiting = q.waiting.clone(us, func(id model.TaskID) *model.Task { return l.TaskByID(id) })
	for id, all := range q.followers {
		c.followers[id] = slices.Clone(all)
	}
	for name, g := range q.groups {
		n := &group{members: g.members, active: g.active}
		for _, t := range g.line.waiting() {
			n.line.items = append(n.line.items, l.TaskByID(t.ID))
		}
		c.groups[name] = n
	}
	c.reservations, c.lastReservation = make([]*model.Reservation, len(q.reservations)), q.lastReservation
	for i, r := range q.reservations {
		c.reservations[i] = new(*r)
	}
	c.head, c.reach = q.head, q.reach
	c.head.GPUs = slices.Clone(q.head.GPUs)
	return c
}

// queueSnapshot is the queue's section of a snapshot.
type queueSnapshot struct {
	Reserved []*model.Reservation `json:"reserved,omitempty"`
	LastRes  int                  `json:"last_reservation,omitempty"`
	Kept     headReservation      `json:"hold"`
	Reach    [2]int               `json:"reach"`
}

func (q *schedulingQueue) snapshot() queueSnapshot {
	return queueSnapshot{Reserved: q.reservations, LastRes: q.lastReservation, Kept: q.head, Reach: q.reach}
}

func (q *schedulingQueue) restore(snap queueSnapshot) error {
	for _, r := range snap.Reserved {
		if r == nil || r.ID < 1 || r.ID > snap.LastRes || len(r.GPUs) == 0 {
			return fmt.Errorf("a reservation is empty or has a number that was not given")
		}
	}
	q.reservations, q.lastReservation, q.head, q.reach = snap.Reserved, snap.LastRes, snap.Kept, snap.Reach
	for _, t := range q.TaskList() {
		if t.Waiting() {
			q.waiting.add(t)
		}
	}
	return nil
}
