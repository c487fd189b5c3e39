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

// configured sorts the queue by the present options.
func (q *schedulingQueue) configured() {
	q.waiting.byPriority = q.Options().ByPriority()
	q.resort(func(*model.Task) bool { return true })
	if by := q.takesTurns(); by != q.waiting.turns {
		q.waiting.refile(by)
	}
}

// recovery and main return the lanes of the two queues, the highest priority first.
func (q *schedulingQueue) recovery() []lane { return q.waiting.recovery() }

func (q *schedulingQueue) main() []lane { return q.waiting.main() }

// byPriority reports whether a priority of both queues goes before all lower ones.
func (q *schedulingQueue) byPriority() bool { return q.waiting.byPriority }

// add adds a waiting task.
func (q *schedulingQueue) add(t *model.Task) { q.waiting.add(t) }

// remove removes a task, and returns false if it does not wait.
func (q *schedulingQueue) remove(t *model.Task) bool { return q.waiting.remove(t) }

// before reports whether a comes before b.
func (q *schedulingQueue) before(a, b *model.Task) bool { return q.waiting.before(a, b) }

// lineOf returns the line of a waiting task.
func (q *schedulingQueue) lineOf(t *model.Task) *line { return q.waiting.lanes[laneOf(t)].lineOf(t) }

// place returns a waiting task's place in its queue, recovery or main, from 1.
func (q *schedulingQueue) place(t *model.Task) int { return q.waiting.place(t) }

// position returns a waiting task's place in the order of all lanes, from 1.
func (q *schedulingQueue) position(t *model.Task) int { return q.waiting.position(t) }

// setReach records the places in the recovery (0) and the main queue (1) that the present
// cycle reached; 0 is the end.
func (q *schedulingQueue) setReach(queue, place int) { q.reach[queue] = place }

// dropBacklog drops the backlog. It is built again when it is needed.
func (q *schedulingQueue) dropBacklog() { q.sums = backlog{} }

// audit returns the first inconsistency of the queue.
func (q *schedulingQueue) audit() error {
	if err := q.auditHeld(); err != nil {
		return err
	}
	if err := q.auditBacklog(); err != nil {
		return err
	}
	for i := range q.waiting.lanes {
		for _, t := range q.waiting.lanes[i].waiting() {
			if laneOf(t) != i {
				return fmt.Errorf("task %d is in the wrong queue", t.ID)
			}
		}
	}
	return q.waiting.audit()
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
