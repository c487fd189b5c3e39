package lifecycle

import (
	"carma/mapper/ledger"
	"carma/mapper/model"
)

// TaskUpdated changes a task's request as far as its phase allows.
func (lc *Lifecycle) TaskUpdated(ev model.TaskUpdated) {
	t := lc.TaskByID(ev.Task)
	if t == nil {
		return
	}
	c := &ev.Change
	phase, since := t.Phase, t.QueuedAt
	queued, alive := t.Waiting(), t.Alive() != nil
	if queued {
		lc.Dequeue(t)
	}
	lc.MarkDirty()
	lc.updateAnytime(t, c)
	if c.Host != nil && t.Resizable() {
		lc.resize(t, *c.Host)
	}
	if c.Host != nil && !alive {
		t.HostMem, t.HostReserve, t.CPUs = c.Host.Memory, c.Host.Reserve, c.Host.CPUs
		t.Request.Normalize()
	}
	if (c.Normalize() || c.Host != nil) && !alive && (queued || phase == model.Held) {
		if c.Normalize() {
			lc.learner.UpdateWaiting(t, c)
		}
		if lc.endImpossible(t) {
			return
		}
	}
	if queued {
		lc.EnqueueAt(t, phase, since)
	}
	if c.After != nil && len(t.Attempts) == 0 {
		lc.replaceDependencies(t, c.After.Tasks)
	}
}

// updateAnytime makes the changes that are possible even while the task runs.
func (lc *Lifecycle) updateAnytime(t *model.Task, c *model.TaskUpdate) {
	if c.Priority != nil {
		t.Priority = max(model.Low, min(model.High, *c.Priority))
	}
	if c.Retries != nil {
		t.Retries = max(0, *c.Retries)
	}
	if c.TimeLimit != nil {
		t.TimeLimit = max(0, *c.TimeLimit)
		if a := t.Current(); a != nil && a.Started > 0 && t.TimeLimit > 0 {
			lc.SetTimer(lc.LimitEnds(t), ledger.Timer{Task: t.ID, Attempt: a.N})
		}
	}
	if c.Slot != nil {
		lc.SetSlot(t, *c.Slot)
		lc.SetTimer(lc.SlotEnds(t), ledger.Timer{})
	}
}

// resize changes the allocation of a running task if its machine has room. Otherwise
// nothing changes.
func (lc *Lifecycle) resize(t *model.Task, ask model.HostAsk) {
	share, no := lc.reserve.ResizedShare(t, ask)
	if no.Code != "" && !lc.HasRecorded() {
		return
	}
	d, ok := lc.Resolve(model.Resize{Task: t.ID, Attempt: t.Current().N, Host: share})
	if !ok {
		return
	}
	t.HostMem, t.HostReserve, t.CPUs = ask.Memory, ask.Reserve, ask.CPUs
	t.Request.Normalize()
	lc.users.RebookHost(t, d.(model.Resize).Host)
	lc.Decide(d)
}
