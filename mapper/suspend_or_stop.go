package mapper

import (
	"time"

	"carma/internal/units"
	"carma/mapper/model"
)

// Where carma would stop a running task, to run it again later or because it is idle, an
// option suspends it instead, so that no work is lost: a task that uses memory granted to
// others, is idle, has used its slot, is moved, or slows a neighbour down. A task that
// cannot be suspended is stopped as without the option.

// suspendLeast is the default of the option of that name. Copying 40 GiB both ways at 5
// GiB/s takes twice 8 s, a seventh of it.
const suspendLeast = 2 * time.Minute

// wanted reports whether the options suspend a task instead of stopping it for a reason.
func (pre *preempter) wanted(code model.ReasonCode) bool {
	switch code {
	case model.ReasonOveruse:
		return pre.Options().SuspendOveruse
	case model.ReasonIdle:
		return pre.Options().SuspendIdle
	case model.ReasonSlotUsed:
		return pre.Options().SuspendSlots
	case model.ReasonMoved:
		return pre.Options().SuspendMoves
	case model.ReasonSlowing:
		return pre.Options().SuspendSlowing
	case model.ReasonMadeWay:
		return pre.Options().Preempts()
	case model.ReasonSwapped:
		return pre.Options().SwapShorter
	case model.ReasonFilled:
		return pre.Options().FillHeld
	}
	return code == model.ReasonDrained // a cordon with Move implies it
}

// canPreempt reports whether a running task would be suspended for a reason.
func (pre *preempter) canPreempt(t *model.Task, code model.ReasonCode) bool {
	return pre.wanted(code) && t.Phase == model.Running && !t.Last().Stays && pre.CannotSuspend(t.ID).Code == "" &&
		(t.VacatesFor(model.Reason{Code: code}) || pre.DriverCannot(t).Code == "")
}

// preemptTask suspends a running task for a reason of carma's. It returns false if that
// is not wanted or not possible; the caller then does what it does without suspension.
func (pre *preempter) preemptTask(t *model.Task, why model.Reason) bool {
	if !pre.canPreempt(t, why.Code) || !pre.Recorded().MaySuspend(t.ID, why) {
		return false
	}
	pre.suspend(t, suspensionFor(why, pre.SuspendableOn(t)), why)
	t.Reason = why
	return true
}

// suspensionFor returns the suspension for a decision with a reason.
func suspensionFor(why model.Reason, host units.Bytes) model.Suspension {
	if why.Code == model.ReasonSuspended {
		return model.Suspension{By: why.Name, Why: why.Text, Host: host}
	}
	return model.Suspension{Reason: why, Host: host, Automatic: why.ResumesOnItsOwn()}
}

// keepRunning handles a task that could not be suspended as without suspension. The next
// check of the GPU and the queues handles overuse and used slots, if that still helps; a
// task on a cordoned GPU continues.
func (pre *preempter) keepRunning(t *model.Task, why model.Reason) {
	if t.Phase != model.Running {
		return // it is stopping already
	}
	switch why.Code {
	case model.ReasonIdle:
		pre.stopVictim(t, why)
	case model.ReasonSlowing:
		pre.evictSlowing(pre.GPU(t.Current().Grants[0].GPU))
	case model.ReasonFilled:
		pre.reserve.BackfillFailed(why)
	}
}

// stopVictim stops a task and marks it for what follows the stop.
func (pre *preempter) stopVictim(t *model.Task, why model.Reason) {
	t.SetStopFlags(why.StopCode())
	pre.stop(t, why)
}

// onSuspended updates a task that has been suspended for a reason.
func (pre *preempter) onSuspended(t *model.Task, why model.Reason) {
	switch why.Code {
	case model.ReasonSlotUsed:
		pre.queue.PutLast(t)
	case model.ReasonSlowing:
		t.Evictions++
	case model.ReasonOveruse:
		t.NextGrant = max(t.NextGrant, min(t.NextGrant.Scale(growFactor).Clamp(), pre.MostFor(t.GPUs)))
		if t.Suspension.InPlace {
			t.NextGrant = pre.OnOriginalGPUs(t, t.NextGrant)
		}
	}
}

// onResumed updates an attempt that runs again after a suspension for a reason.
func (pre *preempter) onResumed(a *model.Attempt, why model.Reason) {
	a.Back = pre.Now()
	if why.Code == model.ReasonSlotUsed {
		a.Turn = pre.Now().Add(-a.SuspendedTime)
	}
}

// goesElsewhere reports whether a running task could be placed on another GPU that passes
// a filter, if that GPU had room.
func (pre *preempter) goesElsewhere(t *model.Task, pass func(*model.GPU) bool) bool {
	probe := pre.asSuspended(t)
	for _, g := range pre.GPUList() {
		if g.ID != t.Current().Grants[0].GPU && pass(g) && pre.ResumeTargets(probe, g) && pre.RoomFor(t, g) >= max(probe.NeedOn(g), 1) {
			return true
		}
	}
	return false
}

// asSuspended returns a copy of a running task as it would wait if it were suspended.
func (pre *preempter) asSuspended(t *model.Task) *model.Task {
	c := *t
	c.SetIndex(0)
	c.Phase, c.Suspension = model.Suspended, &model.Suspension{From: t.Current().Grants, Automatic: true}
	pre.HoldsAgain(&c)
	return &c
}
