package lifecycle

import (
	"carma/internal/units"
	"carma/mapper/model"
)

// HoldChanged holds a task until it is released, or releases it.
func (lc *Lifecycle) HoldChanged(ev model.HoldChanged) {
	t := lc.TaskByID(ev.Task)
	switch {
	case t == nil:
	case t.Alive() != nil:
		lc.holdSuspended(t, ev)
	case ev.Hold && t.Hold == nil:
		lc.Hold(t, ev.By, ev.Why)
	case !ev.Hold && t.Hold != nil:
		t.Hold = nil
		lc.unblock(t)
	}
}

// holdSuspended holds a suspending or suspended task, or releases it. A running, resuming
// or stopping task is not held.
func (lc *Lifecycle) holdSuspended(t *model.Task, ev model.HoldChanged) {
	if ev.Hold == (t.Hold != nil) || ev.Hold && (t.StopReason.Code != "" || t.Phase != model.Suspending && t.Phase != model.Suspended) {
		return
	}
	if t.Waiting() {
		lc.Dequeue(t)
	}
	if t.Hold = nil; ev.Hold {
		t.Hold = &model.Hold{Since: lc.Now(), By: ev.By, Why: ev.Why}
	}
	if t.Waiting() {
		lc.Enqueue(t, model.Suspended)
	}
	lc.MarkDirty()
}

// HoldAfter returns the hold of a task whose attempt has ended, or nil: the hold from its
// suspension, or a hold until the program's caller releases it.
func HoldAfter(t *model.Task, ev model.Exited, now units.Instant) *model.Hold {
	if t.Hold == nil && ev.Again != "" {
		return &model.Hold{Since: now, Why: ev.Again}
	}
	return t.Hold
}

// HoldAgain holds a task after its attempt has ended.
func (lc *Lifecycle) HoldAgain(t *model.Task, held *model.Hold) {
	if held != nil && t.Hold == nil && lc.TaskByID(t.ID) == t && !t.Phase.Placed() {
		t.Hold = held
		lc.shelve(t)
	}
}

// Hold holds a task that is not placed until it is released.
func (lc *Lifecycle) Hold(t *model.Task, by, why string) {
	t.Hold = &model.Hold{Since: lc.Now(), By: by, Why: why}
	lc.shelve(t)
}

// shelve removes a waiting task from its queue, or from the line of its group. It no
// longer counts for the limit of the group.
func (lc *Lifecycle) shelve(t *model.Task) {
	switch t.Phase {
	case model.Queued, model.Recovering:
		lc.Dequeue(t)
		t.Back, t.Phase, t.Rank, t.Behind, t.Seat = t.Phase, model.Held, 0, 0, nil
		lc.MarkDirty()
		lc.queue.CountActive(t, -1)
	case model.Held:
		lc.queue.LeaveGroupLine(t)
	}
	lc.advance(t.Group)
}
