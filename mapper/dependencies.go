package mapper

import (
	"slices"
)

// Condition says how far a task must have come before another may start after it.
type Condition string

// The conditions.
const (
	AfterOK      Condition = "ok"      // it has succeeded
	AfterAny     Condition = "any"     // it has ended, in whatever way
	AfterStarted Condition = "started" // a container of it has run
)

// Conditions lists all conditions.
var Conditions = []Condition{AfterOK, AfterAny, AfterStarted}

// Dependency is a condition on another task that must be met before a task is queued.
type Dependency struct {
	Task      TaskID    `json:"task"`
	Condition Condition `json:"condition"`
}

// Follows reports whether a task that ended in a phase meets a condition. started: a
// container of it has run.
func (c Condition) Follows(phase Phase, started bool) bool {
	switch c {
	case AfterOK:
		return phase == Succeeded
	case AfterStarted:
		return started || phase == Succeeded
	}
	return c == AfterAny
}

// RuleAfter, RuleDelay and RuleGroup say why a held task is in no queue.
const (
	RuleAfter Rule = "after"
	RuleDelay Rule = "delay"
	RuleGroup Rule = "group"
)

// ending describes a task that has just ended, for the tasks that depend on it.
type ending struct {
	id      TaskID
	phase   Phase
	started bool
	group   string
}

// ready reports whether a task has no unmet dependency, no delay left and no hold.
func (t *Task) ready() bool { return len(t.Waits) == 0 && t.Due == 0 && t.Hold == nil }

// hasStarted reports whether a container of a task has run.
func (t *Task) hasStarted() bool {
	return slices.ContainsFunc(t.Attempts, func(a Attempt) bool { return a.Started > 0 })
}

// addDependencies adds the dependencies and the delay of a new task. A senseless
// dependency ends the task: the submitting program checks them first.
func (s *State) addDependencies(t *Task) {
	if t.Delay > 0 {
		t.Due = s.now.Add(t.Delay)
		s.at(t.Due, timer{Task: t.ID})
	}
	for _, d := range t.After {
		of := s.tasks[d.Task]
		switch {
		case !slices.Contains(Conditions, d.Condition):
			s.withdraw(t, Reason{Code: ReasonAfterUnknown, Task: d.Task, Condition: d.Condition})
			return
		case d.Task < 1 || d.Task >= t.ID:
			s.withdraw(t, Reason{Code: ReasonAfterLater, Task: d.Task})
			return
		case of == nil && d.Condition != AfterAny:
			s.withdraw(t, Reason{Code: ReasonAfterForgotten, Task: d.Task})
			return
		case of != nil && (d.Condition != AfterStarted || !of.hasStarted()):
			t.Waits = append(t.Waits, d)
		}
	}
	for _, d := range t.Waits {
		s.queue.followers[d.Task] = append(s.queue.followers[d.Task], t.ID)
	}
}

// followUp updates the tasks that depend on tasks ended in this step, and on tasks that
// end as a result.
func (s *State) followUp() {
	for i := 0; i < len(s.step.endings); i++ {
		e := s.step.endings[i]
		followers := s.queue.followers[e.id]
		delete(s.queue.followers, e.id)
		for _, id := range followers {
			if t := s.tasks[id]; t != nil {
				s.follow(t, e)
			}
		}
		if g := s.queue.groups[e.group]; g != nil {
			s.advance(g)
		}
	}
	s.step.endings = s.step.endings[:0]
}

// follow updates t after a task on which it depends has ended.
func (s *State) follow(t *Task, e ending) {
	for _, d := range t.Waits {
		if d.Task == e.id && !d.Condition.Follows(e.phase, e.started) && s.recorded.mayEnd(t.ID) {
			s.withdraw(t, unmet(d, e.phase))
			return
		}
	}
	s.strike(t, func(d Dependency) bool { return d.Task == e.id })
}

// unmet says why a task will not run.
func unmet(d Dependency, phase Phase) Reason {
	code := ReasonAfterFailed
	if phase == Cancelled {
		code = ReasonAfterCancelled
	}
	return Reason{Code: code, Task: d.Task, Condition: d.Condition}
}

// strike removes the met dependencies of a task. It replaces the list and never changes
// it, because copies of the task share it.
func (s *State) strike(t *Task, met func(Dependency) bool) {
	var left []Dependency
	for _, d := range t.Waits {
		if !met(d) {
			left = append(left, d)
		}
	}
	if len(left) < len(t.Waits) {
		t.Waits = left
		s.unblock(t)
	}
}

// announceStart updates the tasks that depend only on the start of a task.
func (s *State) announceStart(of TaskID) {
	for _, id := range s.queue.followers[of] {
		if t := s.tasks[id]; t != nil {
			s.strike(t, func(d Dependency) bool { return d.Task == of && d.Condition == AfterStarted })
		}
	}
}

// due ends the delay of a task.
func (s *State) due(t *Task) {
	t.Due = 0
	s.unblock(t)
}

// unblock releases a task if nothing holds it any more.
func (s *State) unblock(t *Task) {
	switch {
	case !t.ready():
	case t.Phase == Estimating:
		s.decide(Release{Task: t.ID})
	case t.Phase == Held:
		s.admit(t)
	}
}

// withdraw ends a task that is in no queue yet.
func (s *State) withdraw(t *Task, reason Reason) { s.finish(t, Cancelled, 0, reason) }

// heldBy says what a task waits for before it may be queued, or returns "" if nothing
// holds it.
func (q *schedulingQueue) heldBy(t *Task) (Rule, Reason) {
	switch {
	case t.Phase == Suspended && t.StopReason.Code == "" && t.Hold != nil:
		return RuleHold, Reason{Code: ReasonHold, Name: t.Hold.By, Text: t.Hold.Why, Span: q.now.Sub(t.Hold.Since)}
	case t.Phase == Suspended && t.StopReason.Code == "":
		r := Reason{Code: ReasonSuspended, Name: t.Suspension.By, Text: t.Suspension.Why, Span: q.now.Sub(t.Suspension.Since)}
		if why := t.Suspension.Reason; why.Code != "" {
			r = r.because(why)
		}
		return RuleHold, r
	case t.Phase != Held && t.Phase != Estimating:
		return "", Reason{}
	case t.Hold != nil:
		return RuleHold, Reason{Code: ReasonHold, Name: t.Hold.By, Text: t.Hold.Why, Span: q.now.Sub(t.Hold.Since)}
	case len(t.Waits) > 0:
		d := t.Waits[0]
		return RuleAfter, Reason{Code: ReasonAfter, Task: d.Task, Condition: d.Condition, More: len(t.Waits) - 1}
	case t.Due > 0:
		return RuleDelay, Reason{Code: ReasonDelay, Span: t.Due.Sub(q.now)}
	case t.Phase == Held:
		return RuleGroup, Reason{Code: ReasonGroup, Name: t.Group, Count: q.groups[t.Group].active, Limit: t.Parallel}
	}
	return "", Reason{}
}

// Ready reports whether an unfinished task has no unmet dependency, no delay left and no
// hold.
func (q *schedulingQueue) Ready(id TaskID) bool {
	t := q.tasks[id]
	return t != nil && t.ready()
}
