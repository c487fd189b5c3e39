package ledger

import (
	"cmp"
	"container/heap"
	"slices"

	"carma/internal/units"
	"carma/mapper/model"
)

// agenda holds the present instant, the decisions of the present step, and the timers.
type agenda struct {
	now      units.Instant
	format   int                // of the decisions, see DecisionFormat
	out      []model.Decision   // of the present step
	recorded *recordedDecisions // the recorded decisions on the event in Follow, or nil in Step
	timers   timers
	wake     units.Instant // the instant of the pending SetTimer, or 0
	dirty    bool          // a waiting task may fit now
}

// recordedDecisions holds the recorded decisions on an event that have not been applied
// yet. The methods of nil answer for a state that decides itself.
type recordedDecisions struct{ left []model.Decision }

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

// find returns the index of the first decision of a kind about a task, or -1.
func (c *recordedDecisions) find(kind string, id model.TaskID) int {
	if c == nil {
		return -1
	}
	return slices.IndexFunc(c.left, func(d model.Decision) bool { return d.DecisionKind() == kind && Subject(d) == id })
}

// Next removes and returns the next decision, or returns nil.
func (c *recordedDecisions) Next() model.Decision {
	if len(c.left) == 0 {
		return nil
	}
	d := c.left[0]
	c.left = c.left[1:]
	return d
}

// strike removes a decision that has just been applied.
func (c *recordedDecisions) strike(d model.Decision) {
	if i := c.find(d.DecisionKind(), Subject(d)); i >= 0 {
		c.left = slices.Delete(c.left, i, i+1)
	}
}

// End returns the recorded decision about the end of an attempt, a Finish or a Requeue,
// or nil if this program decides.
func (c *recordedDecisions) End(id model.TaskID) model.Decision {
	i := cmp.Or(c.find(model.Finish{}.DecisionKind(), id)+1, c.find(model.Requeue{}.DecisionKind(), id)+1) - 1
	if i < 0 {
		return nil
	}
	return c.left[i]
}

// Resize returns the recorded resize of a task, or false.
func (c *recordedDecisions) Resize(id model.TaskID) (model.Resize, bool) {
	i := c.find(model.Resize{}.DecisionKind(), id)
	if i < 0 {
		return model.Resize{}, false
	}
	return c.left[i].(model.Resize), true
}

// MayEnd reports whether a task that has not been launched may end now.
func (c *recordedDecisions) MayEnd(id model.TaskID) bool {
	return c == nil || c.find(model.Finish{}.DecisionKind(), id) >= 0
}

// MayStop reports whether a running task may be stopped now, for a reason. Two reasons
// may coincide, and the recorded one determines what follows.
func (c *recordedDecisions) MayStop(id model.TaskID, why model.Reason) bool {
	if c == nil {
		return true
	}
	i := c.find(model.Stop{}.DecisionKind(), id)
	return i >= 0 && c.left[i].(model.Stop).Reason.Equal(why)
}

// MaySuspend reports whether a running task may be suspended now, for a reason.
func (c *recordedDecisions) MaySuspend(id model.TaskID, why model.Reason) bool {
	if c == nil {
		return true
	}
	i := c.find(model.Suspend{}.DecisionKind(), id)
	return i >= 0 && c.left[i].(model.Suspend).Reason.Equal(why)
}

// HasRegrants reports whether changes of grants are recorded, so that none must be
// computed.
func (c *recordedDecisions) HasRegrants(format int) bool { return c != nil && format >= 1 }

// Begin begins a step with an event at an instant. Time never runs backwards.
func (a *agenda) Begin(at units.Instant) {
	a.now = max(a.now, at)
	a.out = nil
}

// Decisions returns the decisions of the present step.
func (a *agenda) Decisions() []model.Decision { return a.out }

// ClearDecisions drops the decisions of the present step.
func (a *agenda) ClearDecisions() { a.out = nil }

// Withdraw drops decisions of the present step, from the one with an index on, for
// which drop returns true.
func (a *agenda) Withdraw(from int, drop func(model.Decision) bool) {
	a.out = append(a.out[:from:from], slices.DeleteFunc(a.out[from:], drop)...)
}

// SetDecisionFormat sets the format of the decisions from now on.
func (a *agenda) SetDecisionFormat(format int) { a.format = format }

// SetRecorded sets the recorded decisions that replace the decisions of this program until
// ClearRecorded.
func (a *agenda) SetRecorded(decided []model.Decision) {
	a.recorded = &recordedDecisions{slices.Clone(decided)}
}

// ClearRecorded has this program decide again.
func (a *agenda) ClearRecorded() { a.recorded = nil }

// Dirty reports whether a waiting task may fit that did not before.
func (a *agenda) Dirty() bool { return a.dirty }

// MarkDirty records that a waiting task may fit that did not before.
func (a *agenda) MarkDirty() { a.dirty = true }

// ClearDirty records that the waiting tasks have been tried.
func (a *agenda) ClearDirty() { a.dirty = false }

// SetWake sets the instant of the pending [model.SetTimer]; 0 means that none is pending.
func (a *agenda) SetWake(at units.Instant) { a.wake = at }

// PopTimer removes and returns the earliest timer that is due, or returns false.
func (a *agenda) PopTimer() (Timer, bool) {
	if len(a.timers) == 0 || a.timers[0].At > a.now {
		return Timer{}, false
	}
	return heap.Pop(&a.timers).(Timer), true
}

// Decide adds a decision to the present step.
func (a *agenda) Decide(d model.Decision) {
	a.out = append(a.out, d)
	a.recorded.strike(d)
}

// NextWake returns the earliest timer to the caller if it has become earlier.
func (a *agenda) NextWake() {
	if len(a.timers) == 0 {
		return
	}
	if next := a.timers[0].At; a.wake == 0 || next < a.wake {
		a.wake = next
		a.Decide(model.SetTimer{At: next})
	}
}

// Now returns the time of the latest event.
func (a *agenda) Now() units.Instant { return a.now }

// NextTimer returns the instant at which a TimerFired event is due, or false if none is.
func (a *agenda) NextTimer() (units.Instant, bool) {
	if len(a.timers) == 0 {
		return 0, false
	}
	return a.timers[0].At, true
}

// DecisionFormat returns the format of the decisions that led to the state, see the
// constant.
func (a *agenda) DecisionFormat() int { return a.format }

// Recorded returns the recorded decisions on the event, or nil if this program decides.
func (a *agenda) Recorded() *recordedDecisions { return a.recorded }
