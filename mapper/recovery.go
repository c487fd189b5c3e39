package mapper

import (
	"slices"

	"carma/internal/units"
)

// exited removes an attempt from its GPUs and decides what follows for the task.
func (s *State) exited(ev Exited) {
	t := s.tasks[ev.Task]
	if t == nil || t.Alive() == nil || t.Alive().N != ev.Attempt {
		return
	}
	if t.Phase == Suspended {
		s.exitedWhileSuspended(t, ev)
		return
	}
	a := t.Current()
	s.learner.endAttempt(t, a, ev)
	a.Peak, a.HostPeak, a.Filled = ev.Peak.Clamp(), ev.HostPeak.Clamp(), ev.Filled
	oom := ev.Class == ExitGPUOOM || ev.Class == ExitSuspectedOOM
	if oom && len(a.Grants) == 0 {
		oom = false
		ev.Class = ExitProgram // a GPU OOM without a GPU
	}
	for _, grant := range a.Grants {
		a.Peak = max(a.Peak, s.byID[grant.GPU].resident(t.ID).Peak)
	}
	blame := oomAttribution{}
	if oom {
		blame = s.attributeOOM(t, a, max(ev.Demand.Clamp(), a.Peak))
		t.ConfirmedOOM = t.ConfirmedOOM || ev.Class == ExitGPUOOM && !ev.Unconfirmed
	}
	if ev.Fault != nil {
		a.Fault = ev.Fault
		s.breakers.openBreaker(t, a, *ev.Fault)
	} else if a.Started == 0 {
		s.breakers.unprobed(t, a)
	}
	t.Seen = s.predictor.observedLoad(t)
	s.predictor.learnGrowth(t, a)
	s.users.vacate(t)
	s.moveOut(t, a)
	s.unsuspend(t, a)
	if ev.Fault == nil {
		s.breakers.roomIn(t.Namespace)
	}
	for _, grant := range a.Grants {
		s.takeOff(s.byID[grant.GPU], t.ID)
	}
	for _, o := range blame.overusers {
		s.growGrant(o)
	}
	switch {
	case ev.Class == ExitOK:
		s.learner.learn(t, a)
	case ev.Class == ExitGPUOOM && blame.own:
		s.learner.learnFloor(t, max(ev.Demand, a.Peak))
	default:
		s.learner.learnFloor(t, a.Peak)
	}
	s.dirty = true
	held := s.heldAfter(t, ev)
	t.Hold = nil
	s.settleEnd(t, a, ev, blame)
	s.holdAgain(t, held)
}

// endAttempt records when and how an attempt ended. An attempt that ended before its
// limit was not stopped by the limit.
func (ln *learner) endAttempt(t *Task, a *Attempt, ev Exited) {
	a.Ended, a.Class, a.Code, a.Message = ln.now, ev.Class, ev.Code, ev.Message
	if ev.Finished > 0 {
		a.Ended = max(min(ev.Finished, ln.now), a.Started, a.Launched)
		if t.TimedOut && t.StopReason.Code == ReasonTimeLimit && a.Started > 0 && a.Ended <= ln.limitEnds(t) {
			t.TimedOut, t.Phase = false, Running // it ended in time, unobserved
		}
		if t.SlotUsed && a.Ended <= a.slotBegan().Add(ln.slot(t)) {
			t.SlotUsed, t.Phase = false, Running
		}
	}
	ln.predictor.progress(t)
	if a.Started > 0 { // no progress after its end
		t.Done = min(t.Done, max(0, a.Ended.Sub(a.Started)-a.SuspendedTime).Seconds())
	}
}

// retry returns the handler for a task that carma itself has stopped to run it again, or
// nil if carma has not.
func (s *State) retry(t *Task) func(*Task, *Attempt) {
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
func (s *State) settleEnd(t *Task, a *Attempt, ev Exited, blame oomAttribution) {
	if t.TimedOut {
		s.finish(t, Failed, ev.Code, t.StopReason)
		return
	}
	if again := s.retry(t); again != nil && ev.Class != ExitOK {
		again(t, a)
		return
	} else if again != nil {
		s.finish(t, Succeeded, 0, Reason{})
		return
	}
	switch {
	case t.Phase == Stopping:
		s.finish(t, Cancelled, ev.Code, t.StopReason)
	case ev.Class == ExitOK:
		s.finish(t, Succeeded, 0, Reason{})
	case ev.Class == ExitGPUOOM:
		s.recoverOOM(t, a, blame)
	case ev.Class == ExitSuspectedOOM && s.recoverSuspected(t, a, ev, blame): // it has decided
	case ev.Class == ExitInfrastructure && ev.Fault != nil && a.Started == 0:
		s.noteStartFailure(t, a, ev)
	case ev.Class == ExitInfrastructure, ev.Class == ExitEvicted, ev.Class == ExitMPSFault, ev.Class == ExitStopped:
		s.recoverNotAtFault(t, a, ev)
	case t.overranHost(a, ev.Class):
		s.hostOverrun(t, a, ev.Code, outcome(ev))
	case ev.Class == ExitCannotStart:
		s.finish(t, Failed, ev.Code, outcome(ev))
	default: // the program's own fault, or host memory
		t.Failures++
		if ev.Again != "" {
			s.requeue(t, Queued, outcome(ev))
			return
		}
		if t.Failures > t.Retries {
			s.finish(t, Failed, ev.Code, outcome(ev))
			return
		}
		s.requeue(t, Queued, Reason{Code: ReasonRetry, Count: t.Failures, Limit: t.Retries}.because(outcome(ev)))
	}
}

// outcome says how an attempt ended that was not asked to stop.
func outcome(ev Exited) Reason {
	r := Reason{Code: ReasonProgram, Text: ev.Message}
	switch ev.Class {
	case ExitHostOOM:
		r.Code = ReasonHostOOM
	case ExitCannotStart:
		r.Code = ReasonCannotStart
	case ExitInfrastructure:
		r.Code = ReasonInfrastructure
	case ExitEvicted:
		r.Code = ReasonEvicted
	case ExitMPSFault:
		r.Code = ReasonMPSFault
	case ExitStopped:
		r.Code = ReasonStopped
	default:
		r.Count = ev.Code
	}
	return r
}

func (s *State) takeOff(g *GPU, id TaskID) {
	g.remove(id)
	s.placer.pace([]*GPU{g})
	if g.idle() {
		// The last samples were of tasks that have ended.
		g.SMACT, g.SMOCC, g.DRAMA = 0, 0, 0
		s.placer.forgetMissing(g)
	}
}

// recoverOOM requeues a task with more memory (see oom_attribution.go), the last time with
// exclusive GPUs.
func (s *State) recoverOOM(t *Task, a *Attempt, v oomAttribution) {
	if !v.own && t.NotAtFault < s.opt.BlamelessRetries {
		a.NotAtFault = true
		t.NotAtFault++
		s.requeue(t, Recovering, Reason{Code: ReasonOOMBlameless}.because(v.reason))
		return
	}
	t.OOMs++
	switch {
	case v.alone && v.demand+s.opt.Headroom >= v.most:
		s.finish(t, Failed, a.Code, Reason{Code: ReasonOOMAlone}.because(v.reason))
		return
	case t.OOMs >= s.opt.Attempts:
		s.finish(t, Failed, a.Code, Reason{Code: ReasonOOMTooOften, Count: t.OOMs}.because(v.reason))
		return
	case s.opt.Recovery == RecoverOriginal:
		t.NextExclusive = true
	case s.opt.Recovery == RecoverStaged:
		t.NextGrant = max(t.NextGrant, stagedFloor*units.Bytes(min(t.OOMs, 2)))
		t.NextExclusive = t.NextExclusive || t.OOMs > 2
	case t.OOMs == 1:
		t.NextGrant = afterOOM(max(v.demand, t.NextGrant))
	default:
		t.NextGrant = max(v.demand, t.NextGrant).Scale(oomAgainFactor).Clamp()
	}
	switch {
	case !t.ConfirmedOOM && s.opt.Recovery != RecoverOriginal && s.opt.Recovery != RecoverStaged:
		t.NextGrant = min(t.NextGrant, v.most) // an unconfirmed OOM gives no exclusive GPU
	case t.OOMs == s.opt.Attempts-1 && !v.alone:
		t.NextExclusive, t.NextGrant = true, v.demand
	case t.NextGrant > v.most:
		t.NextExclusive = true
	}
	if t.NextExclusive { // other processes may use as much as the headroom
		t.NextGrant = max(0, min(t.NextGrant, v.most-s.opt.Headroom))
	}
	oom := Reason{Code: ReasonOOM}.because(v.reason)
	if no := s.users.checkQuota(t.Request, t.GPUs, t.NextGrant, s.alone(t)); no != nil {
		s.finish(t, Failed, a.Code, no.Reason.because(oom))
		return
	}
	s.requeue(t, Recovering, oom)
}

// recoverSuspected requeues a task once with more memory after an error about exhausted
// memory of an unknown type. It returns false for a task that already had more memory, or
// that cannot get more: that task has failed by its own fault.
func (s *State) recoverSuspected(t *Task, a *Attempt, ev Exited, v oomAttribution) bool {
	if !v.own && t.NotAtFault < s.opt.BlamelessRetries {
		a.NotAtFault = true
		t.NotAtFault++
		s.requeue(t, Recovering, Reason{Code: ReasonOOMBlameless}.because(v.reason))
		return true
	}
	need := min(afterOOM(max(v.demand, t.NextGrant)), v.most)
	if t.Suspected || need <= a.Grants[0].Memory {
		return false
	}
	if s.users.checkQuota(t.Request, t.GPUs, need, s.alone(t)) != nil {
		return false
	}
	t.Suspected, t.NextGrant = true, need
	s.requeue(t, Recovering, Reason{Code: ReasonOOMSuspected, Text: ev.Message}.because(v.reason))
	return true
}

// afterOOM returns the next grant of a task after its first GPU OOM.
func afterOOM(demand units.Bytes) units.Bytes { return (demand.Scale(oomFactor) + oomExtra).Clamp() }

// recoverNotAtFault runs a task again, on another GPU if possible, after a failure that
// was not its fault. The wait before that doubles, at most maxBackoffDoublings times.
func (s *State) recoverNotAtFault(t *Task, a *Attempt, ev Exited) {
	a.NotAtFault = true
	t.NotAtFault++
	if t.NotAtFault > s.opt.BlamelessRetries {
		s.finish(t, Failed, ev.Code, Reason{Code: ReasonTooOften, Count: t.NotAtFault}.because(outcome(ev)))
		return
	}
	if ev.Class == ExitInfrastructure {
		for _, grant := range a.Grants {
			if !slices.Contains(t.Avoid, grant.GPU) {
				t.Avoid = append(t.Avoid, grant.GPU)
			}
		}
	}
	if ev.Class == ExitInfrastructure || ev.Class == ExitMPSFault { // what failed needs time to recover
		t.NotBefore = s.now.Add(s.opt.Backoff << min(t.NotAtFault-1, maxBackoffDoublings))
	}
	s.requeue(t, Recovering, outcome(ev))
}

// requeue puts a task back into a queue after an attempt.
func (s *State) requeue(t *Task, phase Phase, reason Reason) {
	if fate := s.recorded.fate(t.ID); fate != nil {
		s.meet(t, fate)
		return
	}
	s.runAgain(t, phase, reason)
}

// runAgain does the work of requeue.
func (s *State) runAgain(t *Task, phase Phase, reason Reason) {
	t.Reason, t.Last().Reason = reason, reason
	s.decide(Requeue{Task: t.ID, Need: t.NextGrant, Alone: t.NextExclusive, Phase: phase, Reason: reason})
	s.enqueue(t, phase)
}
