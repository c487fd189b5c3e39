package recovery

import (
	"carma/mapper/attempt"
	"carma/mapper/breaker"
	"carma/mapper/fairshare"
	"carma/mapper/learn"
	"carma/mapper/ledger"
	"carma/mapper/lifecycle"
	"carma/mapper/model"
	"carma/mapper/observe"
	"carma/mapper/predict"
	"carma/mapper/queue"
)

// Recovery ends attempts, and decides whether their tasks run again.
type Recovery struct {
	*ledger.Ledger
	users     *fairshare.Users
	predictor *predict.Predictor
	breakers  *breaker.Breakers
	queue     *queue.Queue
	learner   *learn.Learner
	observer  *observe.Observer
	lifecycle *lifecycle.Lifecycle
	attempts  *attempt.Attempts
}

// New returns a recovery over other parts. It holds nothing else.
func New(l *ledger.Ledger, us *fairshare.Users, pr *predict.Predictor, br *breaker.Breakers, q *queue.Queue, ln *learn.Learner, ob *observe.Observer, lc *lifecycle.Lifecycle, at *attempt.Attempts) *Recovery {
	return &Recovery{l, us, pr, br, q, ln, ob, lc, at}
}

// Exited removes an attempt from its GPUs and decides what follows for the task.
func (rc *Recovery) Exited(ev model.Exited) {
	t := rc.TaskByID(ev.Task)
	if t == nil || t.Alive() == nil || t.Alive().N != ev.Attempt {
		return
	}
	if t.Phase == model.Suspended {
		rc.exitedWhileSuspended(t, ev)
		return
	}
	a := t.Current()
	rc.learner.EndAttempt(t, a, ev)
	a.Peak, a.HostPeak, a.Filled = ev.Peak.Clamp(), ev.HostPeak.Clamp(), ev.Filled
	oom := ev.Class == model.ExitGPUOOM || ev.Class == model.ExitSuspectedOOM
	if oom && len(a.Grants) == 0 {
		oom = false
		ev.Class = model.ExitProgram // a GPU OOM without a GPU
	}
	for _, grant := range a.Grants {
		a.Peak = max(a.Peak, rc.GPU(grant.GPU).Resident(t.ID).Peak)
	}
	blame := oomAttribution{}
	if oom {
		blame = rc.attributeOOM(t, a, max(ev.Demand.Clamp(), a.Peak))
		t.ConfirmedOOM = t.ConfirmedOOM || ev.Class == model.ExitGPUOOM && !ev.Unconfirmed
	}
	if ev.Fault != nil {
		a.Fault = ev.Fault
		rc.breakers.StartFailed(t, a, *ev.Fault)
	} else if a.Started == 0 {
		rc.breakers.EndedUnstarted(t, a)
	}
	t.Seen = rc.predictor.ObservedLoad(t)
	rc.predictor.LearnGrowth(t, a)
	rc.users.Release(t)
	rc.ReleaseHost(t, a)
	rc.attempts.EndSuspension(t, a)
	if ev.Fault == nil {
		rc.breakers.TaskEndedIn(t.Namespace)
	}
	for _, grant := range a.Grants {
		rc.attempts.RemoveFrom(rc.GPU(grant.GPU), t.ID)
	}
	for _, o := range blame.overusers {
		rc.observer.GrowGrant(o.gpu, o.task)
	}
	switch {
	case ev.Class == model.ExitOK:
		rc.learner.LearnRun(t, a)
	case ev.Class == model.ExitGPUOOM && blame.own:
		rc.learner.LearnFloor(t, max(ev.Demand, a.Peak))
	default:
		rc.learner.LearnFloor(t, a.Peak)
	}
	rc.MarkDirty()
	held := lifecycle.HoldAfter(t, ev, rc.Now())
	t.Hold = nil
	rc.settleEnd(t, a, ev, blame)
	rc.lifecycle.HoldAgain(t, held)
}

// exitedWhileSuspended handles the end of an attempt that was suspended.
func (rc *Recovery) exitedWhileSuspended(t *model.Task, ev model.Exited) {
	a := t.Last()
	if ev.Class == model.ExitGPUOOM || ev.Class == model.ExitSuspectedOOM {
		ev.Class = model.ExitInfrastructure // it had no GPU to run out of
	}
	if t.Waiting() {
		rc.lifecycle.Dequeue(t)
	}
	rc.attempts.DropResidue(t)
	t.Phase = model.Running
	if t.StopReason.Code != "" {
		t.Phase = model.Stopping
	}
	rc.attempts.EndSuspension(t, a)
	rc.learner.EndAttempt(t, a, ev)
	a.Peak, a.HostPeak = max(a.Peak, ev.Peak.Clamp()), ev.HostPeak.Clamp()
	rc.ReleaseHost(t, a)
	if ev.Class == model.ExitOK {
		rc.learner.LearnRun(t, a)
	} else {
		rc.learner.LearnFloor(t, a.Peak)
	}
	rc.MarkDirty()
	held := lifecycle.HoldAfter(t, ev, rc.Now())
	t.Hold = nil
	rc.settleEnd(t, a, ev, oomAttribution{})
	rc.lifecycle.HoldAgain(t, held)
}

// settleEnd ends a task whose attempt has ended, or queues it again.
func (rc *Recovery) settleEnd(t *model.Task, a *model.Attempt, ev model.Exited, blame oomAttribution) {
	if t.TimedOut {
		rc.lifecycle.Finish(t, model.Failed, ev.Code, t.StopReason)
		return
	}
	if again := rc.retry(t); again != nil && ev.Class != model.ExitOK {
		again(t, a)
		return
	} else if again != nil {
		rc.lifecycle.Finish(t, model.Succeeded, 0, model.Reason{})
		return
	}
	switch {
	case t.Phase == model.Stopping:
		rc.lifecycle.Finish(t, model.Cancelled, ev.Code, t.StopReason)
	case ev.Class == model.ExitOK:
		rc.lifecycle.Finish(t, model.Succeeded, 0, model.Reason{})
	case ev.Class == model.ExitGPUOOM:
		rc.recoverOOM(t, a, blame)
	case ev.Class == model.ExitSuspectedOOM && rc.recoverSuspected(t, a, ev, blame): // it has decided
	case ev.Class == model.ExitInfrastructure && ev.Fault != nil && a.Started == 0:
		rc.startFailed(t, a, ev)
	case ev.Class == model.ExitInfrastructure, ev.Class == model.ExitEvicted, ev.Class == model.ExitMPSFault, ev.Class == model.ExitStopped:
		rc.recoverNotAtFault(t, a, ev)
	case t.OverranHost(a, ev.Class):
		rc.hostOverrun(t, a, ev.Code, outcome(ev))
	case ev.Class == model.ExitCannotStart:
		rc.lifecycle.Finish(t, model.Failed, ev.Code, outcome(ev))
	default: // the program's own fault, or host memory
		t.Failures++
		if ev.Again != "" {
			rc.lifecycle.Requeue(t, model.Queued, outcome(ev))
			return
		}
		if t.Failures > t.Retries {
			rc.lifecycle.Finish(t, model.Failed, ev.Code, outcome(ev))
			return
		}
		rc.lifecycle.Requeue(t, model.Queued, model.Reason{Code: model.ReasonRetry, Count: t.Failures, Limit: t.Retries}.WithCause(outcome(ev)))
	}
}

// outcome says how an attempt ended that was not asked to stop.
func outcome(ev model.Exited) model.Reason {
	r := model.Reason{Code: model.ReasonProgram, Text: ev.Message}
	switch ev.Class {
	case model.ExitHostOOM:
		r.Code = model.ReasonHostOOM
	case model.ExitCannotStart:
		r.Code = model.ReasonCannotStart
	case model.ExitInfrastructure:
		r.Code = model.ReasonInfrastructure
	case model.ExitEvicted:
		r.Code = model.ReasonEvicted
	case model.ExitMPSFault:
		r.Code = model.ReasonMPSFault
	case model.ExitStopped:
		r.Code = model.ReasonStopped
	default:
		r.Count = ev.Code
	}
	return r
}
