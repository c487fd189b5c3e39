package ledger

import (
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
	recorded *recordedDecisions // of the present event, or nil if this program decides
	timers   timers
	wake     units.Instant // the instant of the pending SetTimer, or 0
	dirty    bool          // a waiting task may fit now
}

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
