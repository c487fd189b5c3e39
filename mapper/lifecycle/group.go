package lifecycle

import (
	"cmp"

	"carma/mapper/model"
)

// admit queues a task without unmet dependencies. If its group is at its limit, the task
// is held until the group has room.
func (lc *Lifecycle) admit(t *model.Task) {
	if !lc.queue.HoldForGroup(t) {
		lc.queueUp(t)
		return
	}
	lc.advance(t.Group)
	if t.Phase == model.Estimating {
		t.Phase = model.Held
	}
}

// advance queues the held tasks that the limit of a group allows, in order of
// number.
func (lc *Lifecycle) advance(group string) {
	for t := lc.queue.NextOfGroup(group); t != nil; t = lc.queue.NextOfGroup(group) {
		lc.queueUp(t)
	}
}

// queueUp queues a task, with the memory estimate learned while it was held.
func (lc *Lifecycle) queueUp(t *model.Task) {
	lc.queue.CountActive(t, 1)
	if t.Phase == model.Held {
		if len(t.Attempts) == 0 { // else it has learned what it needs
			lc.learner.SetFirstGrant(t)
		}
		lc.Decide(model.Release{Task: t.ID})
	}
	back := cmp.Or(t.Back, model.Queued)
	t.Back = ""
	lc.Enqueue(t, back)
}

// ApplyRelease queues a task held for dependencies, its delay or its group.
func (lc *Lifecycle) ApplyRelease(t *model.Task) {
	t.Waits, t.Due, t.Hold = nil, 0, nil
	if t.Phase != model.Held {
		return // its estimate follows
	}
	lc.queue.LeaveGroupLine(t)
	lc.queueUp(t)
}
