package ledger

import (
	"cmp"
	"container/heap"
	"slices"

	"carma/internal/units"
	"carma/mapper/model"
)

// IsIdleCheck reports whether a timer belongs to an idle attempt.
func (l *Ledger) IsIdleCheck(d Timer) bool {
	t := l.tasks[d.Task]
	return d.Idle && t != nil && t.Phase == model.Running && t.Last().N == d.Attempt && t.Idle.Since > 0
}

// LimitEnds returns the end of the time limit of a running attempt. Suspended time does
// not count.
func (l *Ledger) LimitEnds(t *model.Task) units.Instant {
	a := t.Last()
	return cmp.Or(a.Started, l.now).Add(a.SuspendedTime).Add(t.TimeLimit)
}

// Timer is an instant at which the scheduler must be called again.
type Timer struct {
	At units.Instant `json:"at"`
	// Task and Attempt name the attempt whose time limit ends; without an attempt it is
	// the end of the task's delay. If both are 0, only the queues are scheduled again (a
	// warm-up or a back-off ends).
	Task    model.TaskID `json:"task,omitempty"`
	Attempt int          `json:"attempt,omitempty"`
	// Idle: the attempt is idle, and is checked again.
	Idle bool `json:"idle,omitempty"`
}

func compareTimers(a, b Timer) int {
	return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Task, b.Task), cmp.Compare(a.Attempt, b.Attempt), model.CompareBools(a.Idle, b.Idle))
}

// timers is a heap by instant, then task, then attempt.
type timers []Timer

func (d timers) Len() int { return len(d) }

func (d timers) Less(i, j int) bool {
	return compareTimers(d[i], d[j]) < 0
}

func (d timers) Swap(i, j int) { d[i], d[j] = d[j], d[i] }

func (d *timers) Push(x any) { *d = append(*d, x.(Timer)) }

func (d *timers) Pop() any {
	old := *d
	last := old[len(old)-1]
	*d = old[:len(old)-1]
	return last
}

// SetTimer requests a call of the scheduler at an instant. [units.Never] requests none.
func (l *Ledger) SetTimer(t units.Instant, d Timer) {
	if t == units.Never {
		return
	}
	if n := len(l.timers); n >= 1024 && n&(n-1) == 0 { // rare enough to cost little
		l.dropTimers()
	}
	d.At = t
	heap.Push(&l.timers, d)
}

// dropTimers drops the time limits of attempts that have ended, and duplicate timers at
// one instant: with long limits and short tasks they would accumulate.
func (l *Ledger) dropTimers() {
	l.timers = slices.DeleteFunc(l.timers, func(d Timer) bool { return d.Task != 0 && !l.IsTimeLimit(d) && !l.IsDelay(d) && !l.IsIdleCheck(d) })
	slices.SortFunc(l.timers, compareTimers) // a sorted heap is one
	l.timers = slices.Compact(l.timers)
}

// IsTimeLimit reports whether a timer is the time limit of a running attempt, which may have
// been changed since.
func (l *Ledger) IsTimeLimit(d Timer) bool {
	t := l.tasks[d.Task]
	return t != nil && !d.Idle && t.Phase == model.Running && t.Last().N == d.Attempt && t.TimeLimit > 0 && d.At >= l.LimitEnds(t)
}

// IsDelay reports whether a timer is the end of a task's delay.
func (l *Ledger) IsDelay(d Timer) bool {
	t := l.tasks[d.Task]
	return t != nil && d.Attempt == 0 && t.Due == d.At
}

// NumTimers returns the number of pending timers.
func (a *agenda) NumTimers() int { return len(a.timers) }
