package mapper

import (
	"slices"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/mapper/predict"
)

// exited removes an attempt from its GPUs and decides what follows for the task.
func (s *State) exited(ev model.Exited) {
	t := s.TaskByID(ev.Task)
	if t == nil || t.Alive() == nil || t.Alive().N != ev.Attempt {
		return
	}
	if t.Phase == model.Suspended {
		s.exitedWhileSuspended(t, ev)
		return
	}
	a := t.Current()
	s.learner.EndAttempt(t, a, ev)
	a.Peak, a.HostPeak, a.Filled = ev.Peak.Clamp(), ev.HostPeak.Clamp(), ev.Filled
	oom := ev.Class == model.ExitGPUOOM || ev.Class == model.ExitSuspectedOOM
	if oom && len(a.Grants) == 0 {
		oom = false
		ev.Class = model.ExitProgram // a GPU OOM without a GPU
	}
	for _, grant := range a.Grants {
		a.Peak = max(a.Peak, s.GPU(grant.GPU).Resident(t.ID).Peak)
	}
	blame := oomAttribution{}
	if oom {
		blame = s.attributeOOM(t, a, max(ev.Demand.Clamp(), a.Peak))
		t.ConfirmedOOM = t.ConfirmedOOM || ev.Class == model.ExitGPUOOM && !ev.Unconfirmed
	}
	if ev.Fault != nil {
		a.Fault = ev.Fault
		s.breakers.StartFailed(t, a, *ev.Fault)
	} else if a.Started == 0 {
		s.breakers.EndedUnstarted(t, a)
	}
	t.Seen = s.predictor.ObservedLoad(t)
	s.predictor.LearnGrowth(t, a)
	s.users.Release(t)
	s.ReleaseHost(t, a)
	s.attempts.EndSuspension(t, a)
	if ev.Fault == nil {
		s.breakers.TaskEndedIn(t.Namespace)
	}
	for _, grant := range a.Grants {
		s.attempts.RemoveFrom(s.GPU(grant.GPU), t.ID)
	}
	for _, o := range blame.overusers {
		s.observer.GrowGrant(o.gpu, o.task)
	}
	switch {
	case ev.Class == model.ExitOK:
		s.learner.LearnRun(t, a)
	case ev.Class == model.ExitGPUOOM && blame.own:
		s.learner.LearnFloor(t, max(ev.Demand, a.Peak))
	default:
		s.learner.LearnFloor(t, a.Peak)
	}
	s.MarkDirty()
	held := s.lifecycle.HoldAfter(t, ev)
	t.Hold = nil
	s.settleEnd(t, a, ev, blame)
	s.lifecycle.HoldAgain(t, held)
}

// retry returns the handler for a task that carma itself has stopped to run it again, or
// nil if carma has not.
func (s *State) retry(t *model.Task) func(*model.Task, *model.Attempt) {
	switch {
	case t.Overuse:
		return s.stoppedForOveruse
	case t.Moving:
		return s.evicted
	case t.Recall != nil:
		return s.requeueEnded
	case t.SlotUsed:
		return s.slotOver
	}
	return nil
}

// settleEnd ends a task whose attempt has ended, or queues it again.
func (s *State) settleEnd(t *model.Task, a *model.Attempt, ev model.Exited, blame oomAttribution) {
	if t.TimedOut {
		s.lifecycle.Finish(t, model.Failed, ev.Code, t.StopReason)
		return
	}
	if again := s.retry(t); again != nil && ev.Class != model.ExitOK {
		again(t, a)
		return
	} else if again != nil {
		s.lifecycle.Finish(t, model.Succeeded, 0, model.Reason{})
		return
	}
	switch {
	case t.Phase == model.Stopping:
		s.lifecycle.Finish(t, model.Cancelled, ev.Code, t.StopReason)
	case ev.Class == model.ExitOK:
		s.lifecycle.Finish(t, model.Succeeded, 0, model.Reason{})
	case ev.Class == model.ExitGPUOOM:
		s.recoverOOM(t, a, blame)
	case ev.Class == model.ExitSuspectedOOM && s.recoverSuspected(t, a, ev, blame): // it has decided
	case ev.Class == model.ExitInfrastructure && ev.Fault != nil && a.Started == 0:
		s.noteStartFailure(t, a, ev)
	case ev.Class == model.ExitInfrastructure, ev.Class == model.ExitEvicted, ev.Class == model.ExitMPSFault, ev.Class == model.ExitStopped:
		s.recoverNotAtFault(t, a, ev)
	case t.OverranHost(a, ev.Class):
		s.hostOverrun(t, a, ev.Code, outcome(ev))
	case ev.Class == model.ExitCannotStart:
		s.lifecycle.Finish(t, model.Failed, ev.Code, outcome(ev))
	default: // the program's own fault, or host memory
		t.Failures++
		if ev.Again != "" {
			s.lifecycle.Requeue(t, model.Queued, outcome(ev))
			return
		}
		if t.Failures > t.Retries {
			s.lifecycle.Finish(t, model.Failed, ev.Code, outcome(ev))
			return
		}
		s.lifecycle.Requeue(t, model.Queued, model.Reason{Code: model.ReasonRetry, Count: t.Failures, Limit: t.Retries}.WithCause(outcome(ev)))
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

// recoverOOM requeues a task with more memory (see oom_attribution.go), the last time with
// exclusive GPUs.
func (s *State) recoverOOM(t *model.Task, a *model.Attempt, v oomAttribution) {
	if !v.own && t.NotAtFault < s.Ledger.Options().BlamelessRetries {
		a.NotAtFault = true
		t.NotAtFault++
		s.lifecycle.Requeue(t, model.Recovering, model.Reason{Code: model.ReasonOOMBlameless}.WithCause(v.reason))
		return
	}
	t.OOMs++
	switch {
	case v.alone && v.demand+s.Ledger.Options().Headroom >= v.most:
		s.lifecycle.Finish(t, model.Failed, a.Code, model.Reason{Code: model.ReasonOOMAlone}.WithCause(v.reason))
		return
	case t.OOMs >= s.Ledger.Options().Attempts:
		s.lifecycle.Finish(t, model.Failed, a.Code, model.Reason{Code: model.ReasonOOMTooOften, Count: t.OOMs}.WithCause(v.reason))
		return
	case s.Ledger.Options().Recovery == model.RecoverOriginal:
		t.NextExclusive = true
	case s.Ledger.Options().Recovery == model.RecoverStaged:
		t.NextGrant = max(t.NextGrant, stagedFloor*units.Bytes(min(t.OOMs, 2)))
		t.NextExclusive = t.NextExclusive || t.OOMs > 2
	case t.OOMs == 1:
		t.NextGrant = predict.AfterOOM(max(v.demand, t.NextGrant))
	default:
		t.NextGrant = max(v.demand, t.NextGrant).Scale(oomAgainFactor).Clamp()
	}
	switch {
	case !t.ConfirmedOOM && s.Ledger.Options().Recovery != model.RecoverOriginal && s.Ledger.Options().Recovery != model.RecoverStaged:
		t.NextGrant = min(t.NextGrant, v.most) // an unconfirmed OOM gives no exclusive GPU
	case t.OOMs == s.Ledger.Options().Attempts-1 && !v.alone:
		t.NextExclusive, t.NextGrant = true, v.demand
	case t.NextGrant > v.most:
		t.NextExclusive = true
	}
	if t.NextExclusive { // other processes may use as much as the headroom
		t.NextGrant = max(0, min(t.NextGrant, v.most-s.Ledger.Options().Headroom))
	}
	oom := model.Reason{Code: model.ReasonOOM}.WithCause(v.reason)
	if no := s.users.CheckQuota(t.Request, t.GPUs, t.NextGrant, s.RunsAlone(t)); no != nil {
		s.lifecycle.Finish(t, model.Failed, a.Code, no.Reason.WithCause(oom))
		return
	}
	s.lifecycle.Requeue(t, model.Recovering, oom)
}

// recoverSuspected requeues a task once with more memory after an error about exhausted
// memory of an unknown type. It returns false for a task that already had more memory, or
// that cannot get more: that task has failed by its own fault.
func (s *State) recoverSuspected(t *model.Task, a *model.Attempt, ev model.Exited, v oomAttribution) bool {
	if !v.own && t.NotAtFault < s.Ledger.Options().BlamelessRetries {
		a.NotAtFault = true
		t.NotAtFault++
		s.lifecycle.Requeue(t, model.Recovering, model.Reason{Code: model.ReasonOOMBlameless}.WithCause(v.reason))
		return true
	}
	need := min(predict.AfterOOM(max(v.demand, t.NextGrant)), v.most)
	if t.Suspected || need <= a.Grants[0].Memory {
		return false
	}
	if s.users.CheckQuota(t.Request, t.GPUs, need, s.RunsAlone(t)) != nil {
		return false
	}
	t.Suspected, t.NextGrant = true, need
	s.lifecycle.Requeue(t, model.Recovering, model.Reason{Code: model.ReasonOOMSuspected, Text: ev.Message}.WithCause(v.reason))
	return true
}

// recoverNotAtFault runs a task again, on another GPU if possible, after a failure that
// was not its fault. The wait before that doubles, at most maxBackoffDoublings times.
func (s *State) recoverNotAtFault(t *model.Task, a *model.Attempt, ev model.Exited) {
	a.NotAtFault = true
	t.NotAtFault++
	if t.NotAtFault > s.Ledger.Options().BlamelessRetries {
		s.lifecycle.Finish(t, model.Failed, ev.Code, model.Reason{Code: model.ReasonTooOften, Count: t.NotAtFault}.WithCause(outcome(ev)))
		return
	}
	if ev.Class == model.ExitInfrastructure {
		for _, grant := range a.Grants {
			if !slices.Contains(t.Avoid, grant.GPU) {
				t.Avoid = append(t.Avoid, grant.GPU)
			}
		}
	}
	if ev.Class == model.ExitInfrastructure || ev.Class == model.ExitMPSFault { // what failed needs time to recover
		t.NotBefore = s.Now().Add(s.attempts.Backoff(t.NotAtFault))
	}
	s.lifecycle.Requeue(t, model.Recovering, outcome(ev))
}
