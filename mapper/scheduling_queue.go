package mapper

import (
	"slices"

	"carma/mapper/fairshare"
	"carma/mapper/ledger"
	"carma/mapper/model"
	"carma/mapper/predict"
)

// schedulingQueue holds what decides in which order tasks are tried: the queues, the
// and the tasks held for others or for their group.
type schedulingQueue struct {
	*ledger.Ledger
	users     *fairshare.Users
	predictor *predict.Predictor

	waiting   queues                          // the waiting tasks
	followers map[model.TaskID][]model.TaskID // of each task, the held tasks that depend on it; look-up only; each list in order of number
	groups    map[string]*group               // look-up only
	reach     [2]int                          // the places in the recovery and the main queue that the last cycle reached; 0 is the end

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
	c.reach = q.reach
	return c
}

// queueSnapshot is the queue's section of a snapshot.
type queueSnapshot struct {
	Reach [2]int `json:"reach"`
}

func (q *schedulingQueue) snapshot() queueSnapshot {
	return queueSnapshot{Reach: q.reach}
}

func (q *schedulingQueue) restore(snap queueSnapshot) {
	q.reach = snap.Reach
	for _, t := range q.TaskList() {
		if t.Waiting() {
			q.waiting.add(t)
		}
	}
}
