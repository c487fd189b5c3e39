package lifecycle

import (
	"carma/internal/units"
	"carma/mapper/ledger"
	"carma/mapper/model"
)

// RequeueRequested stops a placed or suspended task so that it is queued again.
func (lc *Lifecycle) RequeueRequested(ev model.RequeueRequested) {
	t := lc.TaskByID(ev.Task)
	if t == nil || t.Alive() == nil || t.StopReason.Code != "" {
		return
	}
	t.Recall = &model.PendingRequeue{Hold: ev.Hold, By: ev.By, Why: ev.Why}
	why := model.Reason{Code: model.ReasonRecalled, Name: ev.By, Text: ev.Why}
	switch {
	case t.Phase != model.Suspended:
		lc.preempter.Stop(t, why)
	case lc.Recorded().MayStop(t.ID, why):
		lc.stopSuspended(t, why)
	default:
		lc.preempter.CancelStop(t)
	}
}

// Requeue puts a task back into a queue after an attempt. A recorded end replaces it.
func (lc *Lifecycle) Requeue(t *model.Task, phase model.Phase, reason model.Reason) {
	if fate := lc.Recorded().End(t.ID); fate != nil {
		lc.ApplyRecordedEnd(t, fate)
		return
	}
	lc.runAgain(t, phase, reason)
}

// runAgain requeues a task, whatever is recorded.
func (lc *Lifecycle) runAgain(t *model.Task, phase model.Phase, reason model.Reason) {
	t.Reason, t.Last().Reason = reason, reason
	lc.Decide(model.Requeue{Task: t.ID, Need: t.NextGrant, Alone: t.NextExclusive, Phase: phase, Reason: reason})
	lc.Enqueue(t, phase)
}

// Enqueue puts a task without grants into its queue.
func (lc *Lifecycle) Enqueue(t *model.Task, phase model.Phase) { lc.EnqueueAt(t, phase, lc.Now()) }

// EnqueueAt puts a task without grants into its queue as if it had waited since an
// instant.
func (lc *Lifecycle) EnqueueAt(t *model.Task, phase model.Phase, at units.Instant) {
	t.Phase, t.QueuedAt = phase, at
	t.Rank = lc.queue.RankOf(t)
	lc.placer.Retry(t)
	lc.users.Enqueued(t)
	lc.queue.Add(t)
	lc.queue.UpdateBacklog(t)
	if lc.queue.InSight(t) {
		lc.MarkDirty()
	}
	if t.NotBefore > lc.Now() {
		lc.SetTimer(t.NotBefore, ledger.Timer{})
	}
}

// Dequeue removes a task from its queue.
func (lc *Lifecycle) Dequeue(t *model.Task) {
	lc.queue.Remove(t)
	lc.queue.LeaveBacklog(t)
	lc.preempter.ClearNominations(t)
	lc.users.Dequeued(t)
	lc.reserve.DropHead(t.ID)
}
