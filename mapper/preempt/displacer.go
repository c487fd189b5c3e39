package preempt

import (
	"carma/mapper/ledger"
	"carma/mapper/model"
	"carma/mapper/predict"
	"carma/mapper/queue"
)

// displacer suspends and stops running tasks. It owns nothing: what becomes of a task is
// recorded in the task.
type displacer struct {
	*ledger.Ledger
	predictor *predict.Predictor
	queue     *queue.Queue
}

// displacement is the removal of a running task from its GPUs by the scheduler itself.
type displacement struct {
	victim *model.Task
	cause  model.Reason // its Task is the task that needs the room or was slowed down, if any
	how    method
}

// method says how a victim leaves its GPUs.
type method int

const (
	suspendOrStop method = iota // suspend if the options want it and the driver can, else stop
	suspendOnly
	stopOnly
)

// displace carries out a displacement, and reports whether it did. It does not if the
// victim may only be suspended and cannot be.
func (di *displacer) displace(d displacement) bool {
	return d.how != stopOnly && di.suspendFor(d.victim, d.cause) ||
		d.how != suspendOnly && di.Stop(d.victim, d.cause)
}

// Stop stops a placed task for a reason, and reports whether it did: of recorded
// decisions, only the recorded stops happen.
func (di *displacer) Stop(t *model.Task, reason model.Reason) bool {
	d, ok := di.Resolve(model.Stop{Task: t.ID, Attempt: t.Last().N, Reason: reason})
	if ok {
		di.ApplyStop(t, d.(model.Stop))
	}
	return ok
}

// ApplyStop stops a placed task. The reason determines what follows its end.
func (di *displacer) ApplyStop(t *model.Task, d model.Stop) {
	was := t.Phase
	t.SetStopFlags(d.Reason.StopCode())
	if t.Phase, t.StopReason = model.Stopping, d.Reason; was == model.Suspending {
		for _, grant := range t.Current().Grants { // unlike a suspending task, a stopping one counts as load
			di.predictor.UpdateSpeeds([]*model.GPU{di.GPU(grant.GPU)})
		}
	}
	di.Decide(d)
}

// wantsSuspension reports whether the options suspend a task instead of stopping it for a reason.
func (di *displacer) wantsSuspension(code model.ReasonCode) bool {
	switch code {
	case model.ReasonOveruse:
		return di.Options().SuspendOveruse
	case model.ReasonIdle:
		return di.Options().SuspendIdle
	case model.ReasonSlotUsed:
		return di.Options().SuspendSlots
	case model.ReasonMoved:
		return di.Options().SuspendMoves
	case model.ReasonSlowing:
		return di.Options().SuspendSlowing
	case model.ReasonMadeWay:
		return di.Options().Preempts()
	case model.ReasonSwapped:
		return di.Options().SwapShorter
	case model.ReasonFilled:
		return di.Options().FillHeld
	}
	return code == model.ReasonDrained // a cordon with Move implies it
}

// canSuspend reports whether a running task would be suspended for a reason.
func (di *displacer) canSuspend(t *model.Task, code model.ReasonCode) bool {
	return di.wantsSuspension(code) && t.Phase == model.Running && !t.Last().Stays && di.CannotSuspend(t.ID).Code == "" &&
		(t.VacatesFor(model.Reason{Code: code}) || di.DriverCannot(t).Code == "")
}

// suspendFor suspends a running task for a reason of carma's. It returns false if that
// is not wanted or not possible; the caller then does what it does without suspension.
func (di *displacer) suspendFor(t *model.Task, why model.Reason) bool {
	if !di.canSuspend(t, why.Code) || !di.Suspend(t, why, t.VacatesFor(why)) {
		return false
	}
	t.Reason = why
	return true
}

// goesElsewhere reports whether a running task could be placed on another GPU that passes
// a filter, if that GPU had room.
func (di *displacer) goesElsewhere(t *model.Task, pass func(*model.GPU) bool) bool {
	probe := di.asSuspended(t)
	for _, g := range di.GPUList() {
		if g.ID != t.Current().Grants[0].GPU && pass(g) && di.ResumeTargets(probe, g) && di.RoomFor(t, g) >= max(probe.NeedOn(g), 1) {
			return true
		}
	}
	return false
}

// asSuspended returns a copy of a running task as it would wait if it were suspended.
func (di *displacer) asSuspended(t *model.Task) *model.Task {
	c := *t
	c.SetIndex(0)
	c.Phase, c.Suspension = model.Suspended, &model.Suspension{From: t.Current().Grants, Automatic: true}
	di.HoldsAgain(&c)
	return &c
}
