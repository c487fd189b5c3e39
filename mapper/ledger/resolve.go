package ledger

import (
	"slices"

	"carma/mapper/model"
)

// recordedDecisions holds the recorded decisions on an event that have not been applied
// yet.
type recordedDecisions struct{ left []model.Decision }

// SetRecorded has recorded decisions replace the decisions of this program until ClearRecorded.
func (a *agenda) SetRecorded(decided []model.Decision) {
	a.recorded = &recordedDecisions{slices.Clone(decided)}
}

// ClearRecorded has this program decide again.
func (a *agenda) ClearRecorded() { a.recorded = nil }

// HasRecorded reports whether there are recorded decisions.
func (a *agenda) HasRecorded() bool { return a.recorded != nil }

// NextRecorded removes and returns the next recorded decision that has not been applied,
// or returns nil.
func (a *agenda) NextRecorded() model.Decision {
	if len(a.recorded.left) == 0 {
		return nil
	}
	d := a.recorded.left[0]
	a.recorded.left = a.recorded.left[1:]
	return d
}

// Resolve returns the decision to apply where this program decides d, or false if there
// is none. That is d itself, or, with recorded decisions, the one that was made in place
// of d:
//
//   - for the end of an attempt or a task (Finish, Requeue), the recorded end of the task;
//   - for Stop and Suspend, the one of the task for the same reason: two reasons may
//     coincide, and the recorded one determines what follows;
//   - for Resize, the one of the task;
//   - for GrantChanged, none: the recorded ones are applied after the event. Journals of
//     format 0 have none, so that d is applied.
func (a *agenda) Resolve(d model.Decision) (model.Decision, bool) {
	if a.recorded == nil {
		return d, true
	}
	id := Subject(d)
	for _, r := range a.recorded.left {
		if Subject(r) != id {
			continue
		}
		switch r := r.(type) {
		case model.Finish, model.Requeue:
			if isEnd(d) {
				return r, true
			}
		case model.Stop:
			if d, ok := d.(model.Stop); ok {
				return r, r.Reason.Equal(d.Reason)
			}
		case model.Suspend:
			if d, ok := d.(model.Suspend); ok {
				return r, r.Reason.Equal(d.Reason)
			}
		case model.Resize:
			if _, ok := d.(model.Resize); ok {
				return r, true
			}
		}
	}
	_, ok := d.(model.GrantChanged)
	return d, ok && a.format < 1
}

// ResolveEnd is Resolve for the end of an attempt. Where none was recorded, d is applied:
// the attempt has ended.
func (a *agenda) ResolveEnd(d model.Decision) model.Decision {
	if r, ok := a.Resolve(d); ok {
		return r
	}
	return d
}

// isEnd reports whether a decision ends an attempt or a task.
func isEnd(d model.Decision) bool {
	switch d.(type) {
	case model.Finish, model.Requeue:
		return true
	}
	return false
}

// strike removes a decision that has just been applied.
func (c *recordedDecisions) strike(d model.Decision) {
	if c == nil {
		return
	}
	if i := slices.IndexFunc(c.left, func(r model.Decision) bool { return r.DecisionKind() == d.DecisionKind() && Subject(r) == Subject(d) }); i >= 0 {
		c.left = slices.Delete(c.left, i, i+1)
	}
}

// Subject returns the task a decision is about, or 0.
func Subject(d model.Decision) model.TaskID {
	switch d := d.(type) {
	case model.Launch:
		return d.Task
	case model.Stop:
		return d.Task
	case model.Requeue:
		return d.Task
	case model.Release:
		return d.Task
	case model.GrantChanged:
		return d.Task
	case model.Suspend:
		return d.Task
	case model.Resume:
		return d.Task
	case model.GrantExceeded:
		return d.Task
	case model.Idle:
		return d.Task
	case model.Resize:
		return d.Task
	case model.Finish:
		return d.Task.ID
	}
	return 0
}
