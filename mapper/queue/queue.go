package queue

import (
	"slices"

	"carma/mapper/fairshare"
	"carma/mapper/ledger"
	"carma/mapper/model"
	"carma/mapper/predict"
)

// Queue holds what decides in which order tasks are tried: the queues, the
// and the tasks held for others or for their group.
type Queue struct {
	*ledger.Ledger
	users     *fairshare.Users
	predictor *predict.Predictor

	waiting   queues                          // the waiting tasks
	followers map[model.TaskID][]model.TaskID // of each task, the held tasks that depend on it; look-up only; each list in order of number
	groups    map[string]*group               // look-up only
	reach     [2]int                          // the places in the recovery and the main queue that the last cycle reached; 0 is the end

	sums Backlog // derived from the waiting tasks
}

// New returns an empty queue.
func New(l *ledger.Ledger, us *fairshare.Users, pr *predict.Predictor) *Queue {
	q := &Queue{Ledger: l, users: us, predictor: pr, followers: map[model.TaskID][]model.TaskID{}, groups: map[string]*group{}}
	q.waiting.byPriority = l.Options().ByPriority()
	if l.Options().Fair() {
		q.waiting.turns = us
	}
	return q
}

// Configured sorts the queue by the present options.
func (q *Queue) Configured() {
	q.waiting.byPriority = q.Options().ByPriority()
	q.Resort(func(*model.Task) bool { return true })
	if by := q.takesTurns(); by != q.waiting.turns {
		q.waiting.refile(by)
	}
}

// Recovery returns the lanes of the recovery queue, the highest priority first.
func (q *Queue) Recovery() []Lane { return q.waiting.recovery() }

// Main returns the lanes of the main queue, the highest priority first.
func (q *Queue) Main() []Lane { return q.waiting.main() }

// ByPriority reports whether a priority of both queues goes before all lower ones.
func (q *Queue) ByPriority() bool { return q.waiting.byPriority }

// Add adds a waiting task.
func (q *Queue) Add(t *model.Task) { q.waiting.add(t) }

// Remove removes a task, and returns false if it does not wait.
func (q *Queue) Remove(t *model.Task) bool { return q.waiting.remove(t) }

// Before reports whether a comes before b.
func (q *Queue) Before(a, b *model.Task) bool { return q.waiting.before(a, b) }

// LineOf returns the line of a waiting task.
func (q *Queue) LineOf(t *model.Task) *Line { return q.waiting.lanes[LaneOf(t)].LineOf(t) }

// Place returns a waiting task's place in its queue, recovery or main, from 1.
func (q *Queue) Place(t *model.Task) int { return q.waiting.place(t) }

// PositionOf returns a waiting task's place in the order of all lanes, from 1.
func (q *Queue) PositionOf(t *model.Task) int { return q.waiting.position(t) }

// SetReach records the places in the recovery (0) and the main queue (1) that the present
// cycle reached; 0 is the end.
func (q *Queue) SetReach(queue, place int) { q.reach[queue] = place }

// Clone returns a copy for copies of the ledger, the users and the predictor.
func (q *Queue) Clone(l *ledger.Ledger, us *fairshare.Users, pr *predict.Predictor) *Queue {
	c := New(l, us, pr)
	c.waiting = q.waiting.clone(us, func(id model.TaskID) *model.Task { return l.TaskByID(id) })
	for id, all := range q.followers {
		c.followers[id] = slices.Clone(all)
	}
	for name, g := range q.groups {
		n := &group{members: g.members, active: g.active}
		for _, t := range g.line.Waiting() {
			n.line.items = append(n.line.items, l.TaskByID(t.ID))
		}
		c.groups[name] = n
	}
	c.reach = q.reach
	return c
}

// Snapshot is the queue's section of a snapshot.
type Snapshot struct {
	Reach [2]int `json:"reach"`
}

// Save returns the section of the snapshot.
func (q *Queue) Save() Snapshot {
	return Snapshot{Reach: q.reach}
}

// Restore adds the waiting tasks of the ledger, and sets what the section of a snapshot says.
func (q *Queue) Restore(snap Snapshot) {
	q.reach = snap.Reach
	for _, t := range q.TaskList() {
		if t.Waiting() {
			q.waiting.add(t)
		}
	}
}

// AddOrphan adds the task of an orphaned container.
func (q *Queue) AddOrphan(ev model.OrphanAdopted) *model.Task {
	q.UseID(ev.ID)
	t := &model.Task{Request: ev.Request, Phase: model.Held, Submitted: q.Now()}
	if ev.Launched > 0 {
		t.Submitted = min(ev.Launched, q.Now())
	}
	for _, grant := range ev.Grants {
		t.NextGrant = max(t.NextGrant, grant.Memory.Clamp())
	}
	t.GPUs, t.Estimate.Memory, t.NextExclusive = len(ev.Grants), t.NextGrant, t.Exclusive // if it runs again
	t.Normalize()
	q.AddTask(t)
	q.AddToGroup(t)
	return t
}

// WaitingList returns the waiting tasks of all queues.
func (q *Queue) WaitingList() (all []*model.Task) {
	for i := range q.waiting.lanes {
		all = append(all, q.waiting.lanes[i].Waiting()...)
	}
	return all
}

// WaitingTasks counts for each task the queues that have it.
func (q *Queue) WaitingTasks() map[model.TaskID]int {
	waiting := map[model.TaskID]int{}
	for _, t := range q.WaitingList() {
		waiting[t.ID]++
	}
	return waiting
}

// RecoveryBlocks reports whether a recovering task keeps the whole main queue
// from starting.
func (q *Queue) RecoveryBlocks() bool {
	if q.Options().Recovery != model.RecoverOriginal {
		return false
	}
	return slices.ContainsFunc(q.waiting.recovery(), func(l Lane) bool {
		return slices.ContainsFunc(l.Waiting(), func(t *model.Task) bool { return t.Phase == model.Recovering })
	})
}

// InSight reports whether the last cycle reached a waiting task's place in its queue.
func (q *Queue) InSight(t *model.Task) bool {
	reach := q.reach[1]
	if t.GoesFirst() {
		reach = q.reach[0]
	}
	return reach == 0 || q.waiting.place(t) <= reach
}

// PutLast puts a task behind all tasks submitted up to now.
func (q *Queue) PutLast(t *model.Task) { t.Behind, t.QueuedAt = q.LastID(), q.Now() }

// Position returns a waiting task's place in the order of all queues, from 1, or 0.
func (q *Queue) Position(id model.TaskID) int {
	t := q.TaskByID(id)
	if t == nil || !t.Waiting() {
		return 0
	}
	return q.waiting.position(t)
}

// QueueLen returns the number of waiting tasks.
func (q *Queue) QueueLen() int { return q.waiting.len() }
