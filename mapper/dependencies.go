package mapper

import (
	"slices"

	"carma/mapper/ledger"
	"carma/mapper/model"
)

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
		case !slices.Contains(model.Conditions, d.Condition):
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
	s.queue.Follow(t, t.Waits)
}

// followUp updates the tasks that depend on tasks ended in this step, and on tasks that
// end as a result.
func (s *State) followUp() {
	for i := 0; i < len(s.step.endings); i++ {
		e := s.step.endings[i]
		for _, id := range s.queue.TakeFollowers(e.id) {
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
	for _, id := range s.queue.FollowersOf(of) {
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
