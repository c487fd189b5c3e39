package recovery

import "carma/mapper/model"

// retry returns the handler for a task that carma itself has stopped to run it again, or
// nil if carma has not.
func (rc *Recovery) retry(t *model.Task) func(*model.Task, *model.Attempt) {
	switch {
	case t.Overuse:
		return rc.stoppedForOveruse
	case t.Moving:
		return rc.evicted
	case t.Recall != nil:
		return rc.requeueEnded
	case t.SlotUsed:
		return rc.slotOver
	}
	return nil
}

// stoppedForOveruse handles the end of an attempt that was stopped for overuse, as after
// a GPU OOM of its own.
func (rc *Recovery) stoppedForOveruse(t *model.Task, a *model.Attempt) {
	reason := t.StopReason
	t.Overuse, t.StopReason = false, model.Reason{}
	if reason.StopCode() == model.ReasonHostOveruse || len(a.Grants) == 0 {
		rc.hostOverrun(t, a, a.Code, reason)
		return
	}
	grant := a.Grants[0].Memory
	for _, g := range a.Grants {
		grant = min(grant, g.Memory)
	}
	rc.recoverOOM(t, a, oomAttribution{own: true, demand: max(a.Peak, grant), most: rc.MostFor(t.GPUs), reason: reason})
}

// evicted requeues a task after its attempt was stopped for slowing others down.
func (rc *Recovery) evicted(t *model.Task, a *model.Attempt) {
	reason := t.StopReason
	a.NotAtFault = true
	t.Moving, t.StopReason = false, model.Reason{}
	t.Evictions++
	rc.lifecycle.Requeue(t, model.Recovering, reason)
}

// requeueEnded requeues a task whose attempt was stopped for that.
func (rc *Recovery) requeueEnded(t *model.Task, a *model.Attempt) {
	reason, recall := t.StopReason, t.Recall
	a.NotAtFault = true
	t.Recall, t.StopReason = nil, model.Reason{}
	rc.lifecycle.Requeue(t, model.Queued, reason)
	if recall.Hold && rc.TaskByID(t.ID) == t && !t.Phase.Placed() {
		rc.lifecycle.Hold(t, recall.By, recall.Why)
	}
}

// slotOver requeues a task after its attempt was stopped for others.
func (rc *Recovery) slotOver(t *model.Task, a *model.Attempt) {
	reason := t.StopReason
	a.NotAtFault = true
	t.SlotUsed, t.StopReason = false, model.Reason{}
	rc.queue.PutLast(t)
	rc.lifecycle.Requeue(t, model.Queued, reason)
}
