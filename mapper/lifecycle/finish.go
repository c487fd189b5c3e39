package lifecycle

import (
	"cmp"

	"carma/internal/units"
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
	case t.Phase == model.Suspended, t.Phase.Placed():
		if lc.stop(t, asked) {
			t.TimedOut = ev.Failed
		}
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

// stop stops a placed or suspended task for a reason, and reports whether it did: of
// recorded decisions, only the recorded stops happen.
func (lc *Lifecycle) stop(t *model.Task, reason model.Reason) bool {
	if t.Phase != model.Suspended {
		return lc.preempter.Stop(t, reason)
	}
	d, ok := lc.Resolve(model.Stop{Task: t.ID, Attempt: t.Last().N, Reason: reason})
	if ok {
		lc.ApplyStop(t, d.(model.Stop))
	}
	return ok
}

// ApplyStop stops a placed or suspended task. A suspended task stays so until its container
// has ended.
func (lc *Lifecycle) ApplyStop(t *model.Task, d model.Stop) {
	if t.Phase != model.Suspended {
		lc.preempter.ApplyStop(t, d)
		return
	}
	if t.Waiting() {
		lc.Dequeue(t)
		lc.MarkDirty()
	}
	t.SetStopFlags(d.Reason.StopCode())
	t.StopReason = d.Reason
	lc.Decide(d)
}

// Finish ends a task that is neither placed nor queued.
func (lc *Lifecycle) Finish(t *model.Task, phase model.Phase, code int, reason model.Reason) {
	lc.ApplyEnd(t, lc.ResolveEnd(finish(t, phase, code, reason)), lc.Now())
}

// endUnlaunched ends a task that has not been launched yet, and reports whether it did: of
// recorded decisions, only the recorded ends happen.
func (lc *Lifecycle) endUnlaunched(t *model.Task, phase model.Phase, reason model.Reason) bool {
	d, ok := lc.Resolve(finish(t, phase, 0, reason))
	if ok {
		lc.ApplyEnd(t, d, lc.Now())
	}
	return ok
}

func finish(t *model.Task, phase model.Phase, code int, reason model.Reason) model.Finish {
	return model.Finish{Task: model.Task{Request: model.Request{ID: t.ID}, Phase: phase, Code: code, Reason: reason}}
}

// ApplyEnd applies a Finish or a Requeue to a task that is neither placed nor queued. It
// queues the task as if it had waited since an instant.
func (lc *Lifecycle) ApplyEnd(t *model.Task, d model.Decision, since units.Instant) {
	switch d := d.(type) {
	case model.Finish:
		lc.End(t, d.Task.Phase, d.Task.Code, d.Task.Reason)
	case model.Requeue:
		d.Phase = cmp.Or(d.Phase, model.Recovering) // older journals have none
		t.NextGrant, t.NextExclusive = d.Need, d.Alone
		t.TimedOut, t.SlotUsed, t.Overuse, t.Moving, t.Recall, t.StopReason = false, false, false, false, nil, model.Reason{}
		t.Reason, t.Last().Reason = d.Reason, d.Reason
		lc.Decide(d)
		lc.EnqueueAt(t, d.Phase, since)
	}
}

// End ends a task.
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
