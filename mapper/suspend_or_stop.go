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
func (l *ledger) wanted(code model.ReasonCode) bool {
	switch code {
	case model.ReasonOveruse:
		return l.opt.SuspendOveruse
	case model.ReasonIdle:
		return l.opt.SuspendIdle
	case model.ReasonSlotUsed:
		return l.opt.SuspendSlots
	case model.ReasonMoved:
		return l.opt.SuspendMoves
	case model.ReasonSlowing:
		return l.opt.SuspendSlowing
	case model.ReasonMadeWay:
		return l.opt.Preempts()
	case model.ReasonSwapped:
		return l.opt.SwapShorter
	case model.ReasonFilled:
		return l.opt.FillHeld
	}
	return code == model.ReasonDrained // a cordon with Move implies it
}

// canPreempt reports whether a running task would be suspended for a reason.
func (l *ledger) canPreempt(t *model.Task, code model.ReasonCode) bool {
	return l.wanted(code) && t.Phase == model.Running && !t.Last().Stays && l.CannotSuspend(t.ID).Code == "" &&
		(t.VacatesFor(model.Reason{Code: code}) || l.driverCannot(t).Code == "")
}

// preemptTask suspends a running task for a reason of carma's. It returns false if that
// is not wanted or not possible; the caller then does what it does without suspension.
func (pre *preempter) preemptTask(t *model.Task, why model.Reason) bool {
	if !pre.canPreempt(t, why.Code) || !pre.recorded.maySuspend(t.ID, why) {
		return false
	}
	pre.suspend(t, suspensionFor(why, pre.onGPUs(t)), why)
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
		pre.evictSlowing(pre.byID[t.Current().Grants[0].GPU])
	case model.ReasonFilled:
		pre.queue.cannotBackfill(why)
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
		pre.queue.toTheBack(t)
	case model.ReasonSlowing:
		t.Evictions++
	case model.ReasonOveruse:
		t.NextGrant = max(t.NextGrant, min(t.NextGrant.Scale(growFactor).Clamp(), pre.most(t.GPUs)))
		if t.Suspension.InPlace {
			t.NextGrant = pre.onOriginalGPUs(t, t.NextGrant)
		}
	}
}

// onResumed updates an attempt that runs again after a suspension for a reason.
func (l *ledger) onResumed(a *model.Attempt, why model.Reason) {
	a.Back = l.now
	if why.Code == model.ReasonSlotUsed {
		a.Turn = l.now.Add(-a.SuspendedTime)
	}
}

// restedAt returns the instant from which an attempt may be suspended again for the
// benefit of others, or 0 if it was never suspended.
func (l *ledger) restedAt(a *model.Attempt) units.Instant {
	if a.Back == 0 {
		return 0
	}
	return a.Back.Add(l.opt.SuspendLeast)
}

// goesElsewhere reports whether a running task could be placed on another GPU that passes
// a filter, if that GPU had room.
func (l *ledger) goesElsewhere(t *model.Task, pass func(*model.GPU) bool) bool {
	probe := l.asSuspended(t)
	for _, g := range l.gpus {
		if g.ID != t.Current().Grants[0].GPU && pass(g) && l.resumeTargets(probe, g) && l.roomFor(t, g) >= max(probe.NeedOn(g), 1) {
			return true
		}
	}
	return false
}

// asSuspended returns a copy of a running task as it would wait if it were suspended.
func (l *ledger) asSuspended(t *model.Task) *model.Task {
	c := *t
	c.SetIndex(0)
	c.Phase, c.Suspension = model.Suspended, &model.Suspension{From: t.Current().Grants, Automatic: true}
	l.holdsAgain(&c)
	return &c
}

// onOriginalGPUs limits a need to the memory that each GPU of a task could give it.
func (l *ledger) onOriginalGPUs(t *model.Task, need units.Bytes) units.Bytes {
	for _, grant := range t.Last().Grants {
		if g := l.byID[grant.GPU]; g != nil {
			need = min(need, g.Capacity-l.opt.Headroom)
		}
	}
	return max(0, need)
}

// holdsAgain sets the next grant of a task to the most memory that it has on a GPU,
// because that much must fit again.
func (l *ledger) holdsAgain(t *model.Task) {
	need := t.NextGrant
	for i, grant := range t.Last().Grants {
		g := l.byID[grant.GPU]
		if r := g.Resident(t.ID); r != nil && !r.Exclusive {
			has := r.Taken()
			if t.Learner { // its grant is all free memory
				has = max(t.NextGrant, r.Used)
			}
			if has = max(0, has); i == 0 || has > need {
				need = has
			}
		}
	}
	t.NextGrant = l.onOriginalGPUs(t, need)
}
