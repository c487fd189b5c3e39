package mapper

import (
	"slices"

	"carma/mapper/ledger"
	"carma/mapper/model"
)

// Conditions lists all conditions.
var Conditions = []model.Condition{model.AfterOK, model.AfterAny, model.AfterStarted}

// ending describes a task that has just ended, for the tasks that depend on it.
type ending struct {
	id      model.TaskID
	phase   model.Phase
	started bool
	group   string
}

// addDependencies adds the dependencies and the delay of a new task. A senseless
// dependency ends the task: the submitting program checks them first.
func (s *State) addDependencies(t *model.Task) {
	if t.Delay > 0 {
		t.Due = s.Now().Add(t.Delay)
		s.SetTimer(t.Due, ledger.Timer{Task: t.ID})
	}
	for _, d := range t.After {
		of := s.TaskByID(d.Task)
		switch {
		case !slices.Contains(Conditions, d.Condition):
			s.withdraw(t, model.Reason{Code: model.ReasonAfterUnknown, Task: d.Task, Condition: d.Condition})
			return
		case d.Task < 1 || d.Task >= t.ID:
			s.withdraw(t, model.Reason{Code: model.ReasonAfterLater, Task: d.Task})
			return
		case of == nil && d.Condition != model.AfterAny:
			s.withdraw(t, model.Reason{Code: model.ReasonAfterForgotten, Task: d.Task})
			return
		case of != nil && (d.Condition != model.AfterStarted || !of.HasStarted()):
			t.Waits = append(t.Waits, d)
		}
	}
	s.queue.follow(t, t.Waits)
}

// followUp updates the tasks that depend on tasks ended in this step, and on tasks that
// end as a result.
func (s *State) followUp() {
	for i := 0; i < len(s.step.endings); i++ {
		e := s.step.endings[i]
		for _, id := range s.queue.takeFollowers(e.id) {
			if t := s.TaskByID(id); t != nil {
				s.follow(t, e)
			}
		}
		s.advance(e.group)
	}
	s.step.endings = s.step.endings[:0]
}

// follow updates t after a task on which it depends has ended.
func (s *State) follow(t *model.Task, e ending) {
	for _, d := range t.Waits {
		if d.Task == e.id && !d.Condition.Follows(e.phase, e.started) && s.Recorded().MayEnd(t.ID) {
			s.withdraw(t, unmet(d, e.phase))
			return
		}
	}
	s.strike(t, func(d model.Dependency) bool { return d.Task == e.id })
}

// unmet says why a task will not run.
func unmet(d model.Dependency, phase model.Phase) model.Reason {
	code := model.ReasonAfterFailed
	if phase == model.Cancelled {
		code = model.ReasonAfterCancelled
	}
	return model.Reason{Code: code, Task: d.Task, Condition: d.Condition}
}

// strike removes the met dependencies of a task. It replaces the list and never changes
// it, because copies of the task share it.
func (s *State) strike(t *model.Task, met func(model.Dependency) bool) {
	var left []model.Dependency
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
func (s *State) announceStart(of model.TaskID) {
	for _, id := range s.queue.followersOf(of) {
		if t := s.TaskByID(id); t != nil {
			s.strike(t, func(d model.Dependency) bool { return d.Task == of && d.Condition == model.AfterStarted })
		}
	}
}

// due ends the delay of a task.
func (s *State) due(t *model.Task) {
	t.Due = 0
	s.unblock(t)
}

// unblock releases a task if nothing holds it any more.
func (s *State) unblock(t *model.Task) {
	switch {
	case !t.Ready():
	case t.Phase == model.Estimating:
		s.Decide(model.Release{Task: t.ID})
	case t.Phase == model.Held:
		s.admit(t)
	}
}

// withdraw ends a task that is in no queue yet.
func (s *State) withdraw(t *model.Task, reason model.Reason) { s.finish(t, model.Cancelled, 0, reason) }

// follow notes that a task waits for others.
func (q *schedulingQueue) follow(t *model.Task, waits []model.Dependency) {
	for _, d := range waits {
		all := q.followers[d.Task]
		i, _ := slices.BinarySearch(all, t.ID)
		q.followers[d.Task] = slices.Insert(all, i, t.ID)
	}
}

// unfollow notes that a task does not wait for others any more.
func (q *schedulingQueue) unfollow(t *model.Task, waits []model.Dependency) {
	for _, d := range waits {
		q.followers[d.Task] = slices.DeleteFunc(q.followers[d.Task], func(id model.TaskID) bool { return id == t.ID })
		if len(q.followers[d.Task]) == 0 {
			delete(q.followers, d.Task)
		}
	}
}

// followersOf returns the tasks that wait for a task, in order of number.
func (q *schedulingQueue) followersOf(id model.TaskID) []model.TaskID { return q.followers[id] }

// takeFollowers removes and returns the tasks that wait for a task that has ended.
func (q *schedulingQueue) takeFollowers(id model.TaskID) []model.TaskID {
	all := q.followers[id]
	delete(q.followers, id)
	return all
}

// heldBy says what a task waits for before it may be queued, or returns "" if nothing
// holds it.
func (q *schedulingQueue) heldBy(t *model.Task) (model.Rule, model.Reason) {
	switch {
	case t.Phase == model.Suspended && t.StopReason.Code == "" && t.Hold != nil:
		return model.RuleHold, model.Reason{Code: model.ReasonHold, Name: t.Hold.By, Text: t.Hold.Why, Span: q.Now().Sub(t.Hold.Since)}
	case t.Phase == model.Suspended && t.StopReason.Code == "":
		r := model.Reason{Code: model.ReasonSuspended, Name: t.Suspension.By, Text: t.Suspension.Why, Span: q.Now().Sub(t.Suspension.Since)}
		if why := t.Suspension.Reason; why.Code != "" {
			r = r.WithCause(why)
		}
		return model.RuleHold, r
	case t.Phase != model.Held && t.Phase != model.Estimating:
		return "", model.Reason{}
	case t.Hold != nil:
		return model.RuleHold, model.Reason{Code: model.ReasonHold, Name: t.Hold.By, Text: t.Hold.Why, Span: q.Now().Sub(t.Hold.Since)}
	case len(t.Waits) > 0:
		d := t.Waits[0]
		return model.RuleAfter, model.Reason{Code: model.ReasonAfter, Task: d.Task, Condition: d.Condition, More: len(t.Waits) - 1}
	case t.Due > 0:
		return model.RuleDelay, model.Reason{Code: model.ReasonDelay, Span: t.Due.Sub(q.Now())}
	case t.Phase == model.Held:
		return model.RuleGroup, model.Reason{Code: model.ReasonGroup, Name: t.Group, Count: q.groups[t.Group].active, Limit: t.Parallel}
	}
	return "", model.Reason{}
}

// Ready reports whether an unfinished task has no unmet dependency, no delay left and no
// hold.
func (q *schedulingQueue) Ready(id model.TaskID) bool {
	t := q.TaskByID(id)
	return t != nil && t.Ready()
}
