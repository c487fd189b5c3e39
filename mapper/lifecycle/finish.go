package lifecycle

import (
	"cmp"

	"carma/mapper/model"
)

// Cancel ends a task that waits, and stops one that is placed or suspended. A task that
// is being stopped to run again ends instead.
func (lc *Lifecycle) Cancel(ev model.Cancel) {
	t, asked := lc.TaskByID(ev.Task), model.Reason{Code: model.ReasonAsked, Text: ev.Reason}
	switch {
	case t != nil && (t.SlotUsed || t.Overuse || t.Moving || t.Recall != nil): // it is stopping already, and must not run again
		t.SlotUsed, t.Overuse, t.Moving, t.Recall, t.StopReason = false, false, false, nil, asked
		t.TimedOut = ev.Failed
	case t == nil || t.Phase == model.Stopping:
	case t.Phase == model.Suspended && t.StopReason.Code != "": // it is stopping already
	case t.Phase == model.Suspended:
		t.TimedOut = ev.Failed
		lc.stopSuspended(t, asked)
	case t.Phase.Placed():
		t.TimedOut = ev.Failed
		lc.preempter.Stop(t, asked)
	default:
		if t.Phase == model.Queued || t.Phase == model.Recovering {
			lc.queue.Remove(t)
			lc.queue.LeaveBacklog(t)
			lc.preempter.ClearNominations(t)
			lc.users.Dequeued(t)
			lc.MarkDirty()
		}
		phase := model.Cancelled
		if ev.Failed {
			phase = model.Failed
		}
		lc.Finish(t, phase, 0, asked)
	}
}

// stopSuspended stops a suspended task. It stays suspended until its container has ended.
func (lc *Lifecycle) stopSuspended(t *model.Task, reason model.Reason) {
	if t.Waiting() {
		lc.Dequeue(t)
		lc.MarkDirty()
	}
	t.StopReason = reason
	lc.Decide(model.Stop{Task: t.ID, Attempt: t.Last().N, Reason: reason})
}

// Finish ends a task that is neither placed nor queued. A recorded end replaces it.
func (lc *Lifecycle) Finish(t *model.Task, phase model.Phase, code int, reason model.Reason) {
	if fate := lc.Recorded().End(t.ID); fate != nil {
		lc.ApplyRecordedEnd(t, fate)
		return
	}
	lc.End(t, phase, code, reason)
}

// End ends a task, whatever is recorded.
func (lc *Lifecycle) End(t *model.Task, phase model.Phase, code int, reason model.Reason) {
	was := t.Phase
	t.Phase, t.Ended, t.Code, t.Reason = phase, lc.Now(), code, reason
	lc.RemoveTask(t)
	lc.breakers.TaskEnded(t.ID)
	lc.queue.LeaveGroup(t, was)
	lc.endings = append(lc.endings, ending{t.ID, phase, t.HasStarted(), t.Group})
	lc.reserve.DropHead(t.ID)
	lc.Decide(model.Finish{Task: *t})
}

// ApplyRecordedEnd applies a recorded Finish or Requeue to a task that is neither placed nor queued.
func (lc *Lifecycle) ApplyRecordedEnd(t *model.Task, fate model.Decision) {
	switch d := fate.(type) {
	case model.Finish:
		lc.End(t, d.Task.Phase, d.Task.Code, d.Task.Reason)
	case model.Requeue:
		t.NextGrant, t.NextExclusive = d.Need, d.Alone
		t.TimedOut, t.SlotUsed, t.Overuse, t.Moving, t.Recall, t.StopReason = false, false, false, false, nil, model.Reason{}
		lc.runAgain(t, cmp.Or(d.Phase, model.Recovering), d.Reason)
	}
}

// ForceStop stops a task for the recorded reason.
func (lc *Lifecycle) ForceStop(t *model.Task, d model.Stop) {
	if t.Alive() == nil || t.StopReason.Code != "" {
		return
	}
	code := d.Reason.StopCode()
	if t.SetStopFlags(code); code == model.ReasonRecalled || code == model.ReasonMoved {
		t.Recall = &model.PendingRequeue{}
	}
	if t.Phase == model.Suspended {
		lc.stopSuspended(t, d.Reason)
		return
	}
	lc.preempter.BeginStop(t, d.Reason)
}
