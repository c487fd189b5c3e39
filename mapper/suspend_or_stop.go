package mapper

import (
	"time"

	"carma/internal/units"
)

// Where carma would stop a running task, to run it again later or because it does
// nothing, an option has it suspended, so no work is lost: a task that takes what is
// booked for others, that does nothing, whose slot is used up, that is moved, or that
// slows a neighbour down. What cannot be suspended is stopped as without the option.

// suspendLeast is the default of the option of that name: twice 8 s is what it takes
// to copy 40 GiB both ways at 5 GiB/s, a seventh of it.
const suspendLeast = 2 * time.Minute

// ReasonDrained: Name drains GPU, and has the tasks there moved; Text is why.
const ReasonDrained ReasonCode = "drained"

// wanted reports whether the options want a task suspended where it would be stopped
// for a reason.
func (s *State) wanted(code ReasonCode) bool {
	switch code {
	case ReasonOveruse:
		return s.opt.SuspendOveruse
	case ReasonIdle:
		return s.opt.SuspendIdle
	case ReasonSlotUsed:
		return s.opt.SuspendSlots
	case ReasonMoved:
		return s.opt.SuspendMoves
	case ReasonSlowing:
		return s.opt.SuspendSlowing
	case ReasonMadeWay:
		return s.opt.preempts()
	case ReasonSwapped:
		return s.opt.SwapShorter
	case ReasonFilled:
		return s.opt.FillHeld
	}
	return code == ReasonDrained // who drains the GPU has asked for it
}

// resumesOnItsOwn reports whether a task that was suspended for a reason comes back as soon as
// there is room. One that did nothing would do that again.
func (r Reason) resumesOnItsOwn() bool { return r.Code != ReasonSuspended && r.Code != ReasonIdle }

// isTimeSlice reports whether a suspended task waits at the back of its queue: it has
// had its time.
func (r Reason) isTimeSlice() bool { return r.Code == ReasonSlotUsed }

// canPreempt reports whether a running task would be suspended for a reason.
func (s *State) canPreempt(t *Task, code ReasonCode) bool {
	return s.wanted(code) && t.Phase == Running && !t.Last().Stays && s.CannotSuspend(t.ID).Code == "" &&
		(t.vacatesFor(Reason{Code: code}) || s.driverCannot(t).Code == "")
}

// preemptTask suspends a running task for a reason of carma's. False: that is not wanted,
// or cannot be; the caller does what it did before there was suspending.
func (s *State) preemptTask(t *Task, why Reason) bool {
	if !s.canPreempt(t, why.Code) || !s.recorded.maySuspend(t.ID, why) {
		return false
	}
	s.suspend(t, suspensionFor(why, s.onGPUs(t)), why)
	t.Reason = why
	return true
}

// suspensionFor is the suspension that a decision with a reason leads to.
func suspensionFor(why Reason, host units.Bytes) Suspension {
	if why.Code == ReasonSuspended {
		return Suspension{By: why.Name, Why: why.Text, Host: host}
	}
	return Suspension{Reason: why, Host: host, Automatic: why.resumesOnItsOwn()}
}

// keepRunning does for a task that could not be suspended what is done without suspending.
// The next look at the GPU and the queues sees to those that use too much or whose slot
// is used up, if that still helps; one on a drained GPU goes on.
func (s *State) keepRunning(t *Task, why Reason) {
	if t.Phase != Running {
		return // it is stopping already
	}
	switch why.Code {
	case ReasonIdle:
		s.stopVictim(t, why)
	case ReasonSlowing:
		s.evictSlowing(s.byID[t.Current().Grants[0].GPU])
	case ReasonFilled:
		s.cannotBackfill(why)
	}
}

// stopVictim stops a task and notes what follows from the reason.
func (s *State) stopVictim(t *Task, why Reason) {
	t.marks(why.stopCode())
	s.stop(t, why)
}

// marks notes what follows a stop for a reason.
func (t *Task) marks(code ReasonCode) {
	switch code {
	case ReasonTimeLimit, ReasonIdle:
		t.TimedOut = true
	case ReasonSlotUsed:
		t.SlotUsed = true
	case ReasonOveruse, ReasonHostOveruse:
		t.Overuse = true
	case ReasonSlowing:
		t.Moving = true
	}
}

// onSuspended follows that a task is off its GPUs for a reason.
func (s *State) onSuspended(t *Task, why Reason) {
	switch why.Code {
	case ReasonSlotUsed:
		s.toTheBack(t)
	case ReasonSlowing:
		t.Evictions++
	case ReasonOveruse:
		t.NextGrant = max(t.NextGrant, min(t.NextGrant.Scale(growFactor).Clamp(), s.most(t.GPUs)))
		if t.Suspension.InPlace {
			t.NextGrant = s.onOriginalGPUs(t, t.NextGrant)
		}
	}
}

// onResumed follows that a task runs again after it was suspended for a reason.
func (s *State) onResumed(a *Attempt, why Reason) {
	a.Back = s.now
	if why.Code == ReasonSlotUsed {
		a.Turn = s.now.Add(-a.SuspendedTime)
	}
}

// restedAt is when an attempt has run for long enough since it came back to be
// suspended for others' sake; 0: it was not suspended yet.
func (s *State) restedAt(a *Attempt) units.Instant {
	if a.Back == 0 {
		return 0
	}
	return a.Back.Add(s.opt.SuspendLeast)
}

// goesElsewhere reports whether a running task could be put on another GPU that a
// filter passes, if that had room.
func (s *State) goesElsewhere(t *Task, pass func(*GPU) bool) bool {
	probe := s.asSuspended(t)
	for _, g := range s.gpus {
		if g.ID != t.Current().Grants[0].GPU && pass(g) && s.resumeTargets(probe, g) && s.roomFor(t, g) >= max(probe.needs(g), 1) {
			return true
		}
	}
	return false
}

// asSuspended is a running task as it would wait if it were suspended.
func (s *State) asSuspended(t *Task) *Task {
	c := *t
	c.cache = taskCache{}
	c.Phase, c.Suspension = Suspended, &Suspension{From: t.Current().Grants, Automatic: true}
	s.holdsAgain(&c)
	return &c
}

// onOriginalGPUs bounds a need by what each GPU that a task has could give it.
func (s *State) onOriginalGPUs(t *Task, need units.Bytes) units.Bytes {
	for _, grant := range t.Last().Grants {
		if g := s.byID[grant.GPU]; g != nil {
			need = min(need, g.Capacity-s.opt.Headroom)
		}
	}
	return max(0, need)
}

// holdsAgain sets the need of a task to the most that it has on a GPU: that must fit again.
func (s *State) holdsAgain(t *Task) {
	need := t.NextGrant
	for i, grant := range t.Last().Grants {
		g := s.byID[grant.GPU]
		if r := g.resident(t.ID); r != nil && !r.Exclusive {
			has := r.taken()
			if t.Learner { // its grant is all that was free
				has = max(t.NextGrant, r.Used)
			}
			if has = max(0, has); i == 0 || has > need {
				need = has
			}
		}
	}
	t.NextGrant = s.onOriginalGPUs(t, need)
}
