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
	if lc.stop(t, model.Reason{Code: model.ReasonRecalled, Name: ev.By, Text: ev.Why}) {
		t.Recall = &model.PendingRequeue{Hold: ev.Hold, By: ev.By, Why: ev.Why}
	}
}

// Requeue puts a task back into a queue after an attempt.
func (lc *Lifecycle) Requeue(t *model.Task, phase model.Phase, reason model.Reason) {
	lc.RequeueAt(t, phase, lc.Now(), reason)
}

// RequeueAt puts a task back into a queue after an attempt, as if it had waited since an
// instant.
func (lc *Lifecycle) RequeueAt(t *model.Task, phase model.Phase, at units.Instant, reason model.Reason) {
	lc.ApplyEnd(t, lc.ResolveEnd(model.Requeue{Task: t.ID, Need: t.NextGrant, Alone: t.NextExclusive, Phase: phase, Reason: reason}), at)
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
