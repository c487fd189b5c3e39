package mapper

import (
	"cmp"
	"container/heap"
	"slices"

	"carma/internal/units"
	"carma/mapper/model"
)

// timer is an instant at which the scheduler must be called again.
type timer struct {
	At units.Instant `json:"at"`
	// Task and Attempt name the attempt whose time limit ends; without an attempt it is
	// the end of the task's delay. If both are 0, only the queues are scheduled again (a
	// warm-up or a back-off ends).
	Task    model.TaskID `json:"task,omitempty"`
	Attempt int          `json:"attempt,omitempty"`
	// Idle: the attempt is idle, and is checked again.
	Idle bool `json:"idle,omitempty"`
}

func compareTimers(a, b timer) int {
	return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Task, b.Task), cmp.Compare(a.Attempt, b.Attempt), model.CompareBools(a.Idle, b.Idle))
}

// timers is a heap by instant, then task, then attempt.
type timers []timer

func (d timers) Len() int { return len(d) }
func (d timers) Less(i, j int) bool {
	return compareTimers(d[i], d[j]) < 0
}
func (d timers) Swap(i, j int) { d[i], d[j] = d[j], d[i] }
func (d *timers) Push(x any)   { *d = append(*d, x.(timer)) }
func (d *timers) Pop() any {
	old := *d
	last := old[len(old)-1]
	*d = old[:len(old)-1]
	return last
}

func (l *ledger) at(t units.Instant, d timer) {
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
func (l *ledger) dropTimers() {
	l.timers = slices.DeleteFunc(l.timers, func(d timer) bool { return d.Task != 0 && !l.limits(d) && !l.delays(d) && !l.idles(d) })
	slices.SortFunc(l.timers, compareTimers) // a sorted heap is one
	l.timers = slices.Compact(l.timers)
}

// limits reports whether a timer is the time limit of a running attempt, which may have
// been changed since.
func (l *ledger) limits(d timer) bool {
	t := l.tasks[d.Task]
	return t != nil && !d.Idle && t.Phase == model.Running && t.Last().N == d.Attempt && t.TimeLimit > 0 && d.At >= l.limitEnds(t)
}

// delays reports whether a timer is the end of a task's delay.
func (l *ledger) delays(d timer) bool {
	t := l.tasks[d.Task]
	return t != nil && d.Attempt == 0 && t.Due == d.At
}

// expire handles all timers that are due.
func (s *State) expire() {
	for len(s.timers) > 0 && s.timers[0].At <= s.now {
		d := heap.Pop(&s.timers).(timer)
		s.dirty = true
		s.reopen()
		if s.delays(d) {
			s.due(s.tasks[d.Task])
		} else if s.idles(d) {
			s.preempter.judgeIdle(s.tasks[d.Task])
		} else if s.limits(d) {
			t := s.tasks[d.Task]
			t.TimedOut = true
			s.preempter.stop(t, model.Reason{Code: model.ReasonTimeLimit, Span: t.TimeLimit})
		}
	}
}
