package lifecycle

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
func (lc *Lifecycle) addDependencies(t *model.Task) {
	if t.Delay > 0 {
		t.Due = lc.Now().Add(t.Delay)
		lc.SetTimer(t.Due, ledger.Timer{Task: t.ID})
	}
	for _, d := range t.After {
		of := lc.TaskByID(d.Task)
		switch {
		case !slices.Contains(model.Conditions, d.Condition):
			lc.Finish(t, model.Cancelled, 0, model.Reason{Code: model.ReasonAfterUnknown, Task: d.Task, Condition: d.Condition})
			return
		case d.Task < 1 || d.Task >= t.ID:
			lc.Finish(t, model.Cancelled, 0, model.Reason{Code: model.ReasonAfterLater, Task: d.Task})
			return
		case of == nil && d.Condition != model.AfterAny:
			lc.Finish(t, model.Cancelled, 0, model.Reason{Code: model.ReasonAfterForgotten, Task: d.Task})
			return
		case of != nil && (d.Condition != model.AfterStarted || !of.HasStarted()):
			t.Waits = append(t.Waits, d)
		}
	}
	lc.queue.Follow(t, t.Waits)
}

// replaceDependencies replaces the dependencies of a task that has not been launched yet.
// A senseless list changes nothing.
func (lc *Lifecycle) replaceDependencies(t *model.Task, after []model.Dependency) {
	var waits []model.Dependency
	for _, d := range after {
		if !slices.Contains(model.Conditions, d.Condition) || d.Task < 1 || d.Task >= t.ID {
			return
		}
		if of := lc.TaskByID(d.Task); of != nil && (d.Condition != model.AfterStarted || !of.HasStarted()) {
			waits = append(waits, d)
		}
	}
	lc.queue.Unfollow(t, t.Waits)
	waited := !t.Ready()
	t.After, t.Waits = append([]model.Dependency(nil), after...), waits // a nil list becomes the empty list
	lc.queue.Follow(t, waits)
	if t.Ready() && waited {
		lc.unblock(t)
	} else if !t.Ready() {
		lc.shelve(t)
	}
}

// FollowUp updates the tasks that depend on tasks ended in this step, and on tasks that
// end as a result.
func (lc *Lifecycle) FollowUp() {
	for i := 0; i < len(lc.endings); i++ {
		e := lc.endings[i]
		for _, id := range lc.queue.TakeFollowers(e.id) {
			if t := lc.TaskByID(id); t != nil {
				lc.follow(t, e)
			}
		}
		lc.advance(e.group)
	}
	lc.endings = lc.endings[:0]
}

// follow updates t after a task on which it depends has ended.
func (lc *Lifecycle) follow(t *model.Task, e ending) {
	for _, d := range t.Waits {
		if d.Task == e.id && !d.Condition.Follows(e.phase, e.started) && lc.endUnlaunched(t, model.Cancelled, unmet(d, e.phase)) {
			return
		}
	}
	lc.strike(t, func(d model.Dependency) bool { return d.Task == e.id })
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
func (lc *Lifecycle) strike(t *model.Task, met func(model.Dependency) bool) {
	var left []model.Dependency
	for _, d := range t.Waits {
		if !met(d) {
			left = append(left, d)
		}
	}
	if len(left) < len(t.Waits) {
		t.Waits = left
		lc.unblock(t)
	}
}

// TaskStarted updates the tasks that depend only on the start of a task.
func (lc *Lifecycle) TaskStarted(of model.TaskID) {
	for _, id := range lc.queue.FollowersOf(of) {
		if t := lc.TaskByID(id); t != nil {
			lc.strike(t, func(d model.Dependency) bool { return d.Task == of && d.Condition == model.AfterStarted })
		}
	}
}

// DelayEnded ends the delay of a task.
func (lc *Lifecycle) DelayEnded(t *model.Task) {
	t.Due = 0
	lc.unblock(t)
}

// unblock releases a task if nothing holds it any more.
func (lc *Lifecycle) unblock(t *model.Task) {
	switch {
	case !t.Ready():
	case t.Phase == model.Estimating:
		lc.Decide(model.Release{Task: t.ID})
	case t.Phase == model.Held:
		lc.admit(t)
	}
}
