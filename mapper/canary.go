package mapper

import (
	"slices"
	"time"

	"carma/internal/units"
)

// If the engine's message does not say why a container could not start, evidence decides
// what is at fault. The engine is at fault if tasks of two users cannot start, or if the
// canary fails: a container of carma's own that needs nothing special. If the canary
// starts, the task or its image is at fault.

// ScopeUnknown: the engine's message does not say what is at fault.
const ScopeUnknown BreakerScope = "unknown"

// CanaryOutcome says how the canary ended.
type CanaryOutcome string

// The outcomes of the canary.
const (
	CanaryStarted CanaryOutcome = "started"
	CanaryFailed  CanaryOutcome = "failed"
	CanaryMissing CanaryOutcome = "missing" // no canary can run here
)

// CanaryEnded is the outcome of the canary for which [State.CanaryDue] asked.
type CanaryEnded struct {
	At      units.Instant `json:"at"`
	Outcome CanaryOutcome `json:"outcome"`
	// Fault says why it failed, or is nil if it did not.
	Fault *Fault `json:"fault,omitempty"`
}

func (e CanaryEnded) when() units.Instant { return e.At }
func (CanaryEnded) kind() string          { return "canary-ended" }
func (CanaryEnded) about() TaskID         { return 0 }

// complaintUsers is the number of users whose tasks must fail to start for an unknown
// reason before that counts against the engine.
const complaintUsers = 2

// complaints are consecutive failed starts for an unknown reason, not yet explained.
type complaints struct {
	Fault    Fault         `json:"fault"` // the latest
	Since    units.Instant `json:"since"`
	Failures int           `json:"failures"`
	// Tasks are the unfinished tasks whose starts failed, the latest last.
	Tasks []TaskID `json:"tasks"`
}

func (c *complaints) clone() *complaints {
	if c == nil {
		return nil
	}
	n := *c
	n.Tasks = slices.Clone(c.Tasks)
	return &n
}

// canary is the schedule of the canary.
type canary struct {
	// Next is the instant of the next start, or 0 if none is needed.
	Next units.Instant `json:"next,omitempty"`
	// Last is the instant at which it last ended, or 0 if it never ran.
	Last units.Instant `json:"last,omitempty"`
	// Wait is the time between two canaries that fail, or 0 if the last one did not.
	Wait time.Duration `json:"wait,omitempty"`
}

// failing reports whether the last canary failed.
func (c *canary) failing() bool { return c.Wait > 0 }

// CanaryDue reports whether a canary must be started now. It stays true until the outcome
// comes back as [CanaryEnded], or the canary is no longer needed.
func (s *State) CanaryDue() bool {
	return s.engineDown.Code == "" && s.canary.Next > 0 && s.canary.Next <= s.now
}

// askCanary asks for a canary, but not sooner than nextProbe after the last one.
func (s *State) askCanary() {
	if s.canary.Next > 0 {
		return
	}
	next := s.now
	if s.canary.Last > 0 {
		next = max(next, s.canary.Last.Add(s.nextProbe()))
	}
	s.canaryAt(next)
}

func (s *State) canaryAt(at units.Instant) {
	s.canary.Next = max(at, 1)
	s.at(s.canary.Next, timer{})
}

// complains counts a start that failed for an unknown reason.
func (s *State) complains(t *Task, f Fault) {
	s.askCanary()
	if s.engineBreaker.paused() || s.engineBreaker != nil && s.engineBreaker.Unknown {
		cause := s.engineBreaker.Fault
		if s.engineBreaker = s.recordFailure(s.engineBreaker, t, f); s.canary.failing() {
			s.engineBreaker.Fault = cause // the canary's fault is more specific than a task's
		}
		return
	}
	if s.complaints == nil {
		s.complaints = &complaints{Since: s.now}
	}
	c := s.complaints
	c.Fault, c.Failures = f, c.Failures+1
	c.Tasks = append(slices.DeleteFunc(c.Tasks, func(id TaskID) bool { return id == t.ID }), t.ID)
	c.Tasks = c.Tasks[max(0, len(c.Tasks)-sickNames):]
	if s.complainingUsers() >= complaintUsers {
		s.blameEngine(f)
	}
}

// complainingUsers counts the users of the tasks in complaints. A task that failed before
// where other containers started is no evidence against the engine.
func (s *State) complainingUsers() int {
	var users []string
	for _, id := range s.complaints.Tasks {
		if t := s.tasks[id]; t != nil && t.StartFailuresWhileOthersStart == 0 && !slices.Contains(users, t.User) {
			users = append(users, t.User)
		}
	}
	return len(users)
}

// blameEngine counts all complaints against the engine.
func (s *State) blameEngine(f Fault) {
	if s.engineBreaker == nil {
		s.engineBreaker = &breaker{Since: s.now, Unknown: true}
	}
	i := s.engineBreaker
	i.Fault = f
	if c := s.complaints; c != nil {
		i.Since, i.Failures = min(i.Since, c.Since), i.Failures+c.Failures
		for _, id := range c.Tasks {
			i.failed(id)
		}
	}
	s.complaints = nil
	if !i.paused() && (len(i.Tasks) >= sickTasks || s.canary.failing()) {
		i.Wait = s.nextProbe()
		s.probeAt(i, s.now.Add(i.Wait))
	}
	s.capacityChanged()
	s.dirty = true
}

// canaryEnded resolves the complaints by the outcome of the canary.
func (s *State) canaryEnded(ev CanaryEnded) {
	before := s.canary
	s.canary = canary{Last: max(s.now, 1)}
	switch {
	case s.complaints == nil && s.engineBreaker == nil: // a task has started meanwhile, or the tasks have ended
	case ev.Outcome == CanaryFailed:
		s.canary.Wait = max(s.nextProbe(), min(2*before.Wait, lastTest))
		s.canaryAt(s.now.Add(s.canary.Wait))
		f := Fault{}
		if ev.Fault != nil {
			f = *ev.Fault
		}
		f.Scope = ScopeEngine
		s.blameEngine(f)
	case ev.Outcome == CanaryStarted:
		s.blameTasks()
		if before.failing() && s.engineBreaker != nil { // the engine was at fault, and works again
			s.letGo(s.engineBreaker)
			s.closeBreaker()
		} else if s.engineBreaker != nil && s.engineBreaker.Unknown {
			s.countFailedStarts(s.engineBreaker.Tasks)
			s.closeBreaker()
		}
		s.closeIfGone()
	default:
		s.blameTasks()
		s.closeIfGone()
	}
}

// closeBreaker lets all tasks be launched again.
func (s *State) closeBreaker() {
	s.engineBreaker = nil
	s.capacityChanged()
	s.dirty = true
}

// closeIfGone closes the breaker if all tasks whose starts failed have ended.
func (s *State) closeIfGone() {
	if s.engineBreaker != nil && !s.complaining(s.engineBreaker) {
		s.closeBreaker()
	}
}

// taskStarted resolves the complaints of other tasks, because a task has started.
func (s *State) taskStarted(id TaskID) {
	if c := s.complaints; c != nil {
		c.Tasks = slices.DeleteFunc(c.Tasks, func(o TaskID) bool { return o == id })
	}
	s.blameTasks()
	s.canary = canary{Last: s.canary.Last}
}

// blameTasks counts all complaints against the tasks.
func (s *State) blameTasks() {
	if s.complaints != nil {
		s.countFailedStarts(s.complaints.Tasks)
		s.complaints = nil
	}
}

// countFailedStarts counts a failed start against each task, because another container has
// started or because no other user's task failed. The tasks are tried again later.
func (s *State) countFailedStarts(tasks []TaskID) {
	for _, id := range tasks {
		t := s.tasks[id]
		if t == nil {
			continue
		}
		t.StartFailuresWhileOthersStart++
		if t.waiting() && t.StartFailures > 0 && t.NotBefore <= s.now {
			t.NotBefore = s.now.Add(s.startBackoff(t))
			s.at(t.NotBefore, timer{})
			s.dirty = true // tasks behind it may be within the look-ahead now
		}
	}
}

// startBackoff returns the time until a task is tried again after failed starts.
func (s *State) startBackoff(t *Task) time.Duration {
	return min(s.nextProbe()<<min(max(t.StartFailures-1, 0), 20), lastTest)
}

// complainerEnded withdraws the complaint of a task that has ended. If no complaint is
// left, the engine is no longer at fault, unless the canary fails.
func (s *State) complainerEnded(id TaskID) {
	if c := s.complaints; c != nil {
		c.Tasks = slices.DeleteFunc(c.Tasks, func(o TaskID) bool { return o == id })
		if len(c.Tasks) == 0 {
			s.complaints = nil
		}
	}
	if s.canary.failing() {
		return
	}
	if s.engineBreaker != nil && s.engineBreaker.Unknown {
		s.closeIfGone()
	}
	switch {
	case s.engineBreaker.paused() && !s.complaining(s.engineBreaker): // the cause was known; the canary shows whether it persists
		s.canary.Next = max(s.now, 1) // no timer: it is due now
	case s.complaints == nil && (s.engineBreaker == nil || !s.engineBreaker.Unknown):
		s.canary.Next = 0
	}
}

// complaining reports whether any task whose start failed is unfinished.
func (s *State) complaining(i *breaker) bool {
	return slices.ContainsFunc(i.Tasks, func(id TaskID) bool { return s.tasks[id] != nil })
}
