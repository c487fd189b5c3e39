package queue

import (
	"slices"

	"carma/mapper/model"
)

// Follow notes that a task waits for others.
func (q *Queue) Follow(t *model.Task, waits []model.Dependency) {
	for _, d := range waits {
		all := q.followers[d.Task]
		i, _ := slices.BinarySearch(all, t.ID)
		q.followers[d.Task] = slices.Insert(all, i, t.ID)
	}
}

// Unfollow notes that a task does not wait for others any more.
func (q *Queue) Unfollow(t *model.Task, waits []model.Dependency) {
	for _, d := range waits {
		q.followers[d.Task] = slices.DeleteFunc(q.followers[d.Task], func(id model.TaskID) bool { return id == t.ID })
		if len(q.followers[d.Task]) == 0 {
			delete(q.followers, d.Task)
		}
	}
}

// FollowersOf returns the tasks that wait for a task, in order of number.
func (q *Queue) FollowersOf(id model.TaskID) []model.TaskID { return q.followers[id] }

// TakeFollowers removes and returns the tasks that wait for a task that has ended.
func (q *Queue) TakeFollowers(id model.TaskID) []model.TaskID {
	all := q.followers[id]
	delete(q.followers, id)
	return all
}

// HeldBy says what a task waits for before it may be queued, or returns "" if nothing
// holds it.
func (q *Queue) HeldBy(t *model.Task) (model.Rule, model.Reason) {
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
func (q *Queue) Ready(id model.TaskID) bool {
	t := q.TaskByID(id)
	return t != nil && t.Ready()
}
