package mapper

import (
	"cmp"
	"slices"
)

// lane is one list of waiting tasks by rank, then in order of submission. Adding at the end
// and removing near the front cost the same however long it is.
type lane struct {
	items []*Task
	head  int // items[:head] are gone
}

func (l *lane) len() int         { return len(l.items) - l.head }
func (l *lane) at(i int) *Task   { return l.items[l.head+i] }
func (l *lane) waiting() []*Task { return l.items[l.head:] }

func (l *lane) find(t *Task) (int, bool) {
	return slices.BinarySearchFunc(l.waiting(), t, func(a, b *Task) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.ID, b.ID))
	})
}

func (l *lane) add(t *Task) {
	if l.head > 64 && l.head > len(l.items)/2 {
		n := copy(l.items, l.items[l.head:])
		clear(l.items[n:])
		l.items, l.head = l.items[:n], 0
	}
	i, _ := l.find(t)
	l.items = slices.Insert(l.items, l.head+i, t)
}

// remove takes out the i-th waiting task, moving the shorter side.
func (l *lane) remove(i int) {
	at := l.head + i
	if i < l.len()/2 {
		copy(l.items[l.head+1:at+1], l.items[l.head:at])
		l.items[l.head] = nil
		l.head++
		return
	}
	copy(l.items[at:], l.items[at+1:])
	l.items[len(l.items)-1] = nil
	l.items = l.items[:len(l.items)-1]
}

// queues are all waiting tasks: the recovery queue before the main queue, in
// each the higher priority first, within a priority by rank: in order of
// submission, unless the order option says otherwise.
type queues struct {
	lanes [6]lane
}

func (q *queues) recovery() []lane { return q.lanes[:3] }
func (q *queues) main() []lane     { return q.lanes[3:] }

func lanesLen(lanes []lane) int {
	n := 0
	for i := range lanes {
		n += lanes[i].len()
	}
	return n
}

func laneOf(t *Task) int {
	i := 1 - int(max(Low, min(High, t.Priority)))
	if t.Phase == Recovering {
		return i
	}
	return 3 + i
}

// before reports whether a comes before b in the order of the queues.
func before(a, b *Task) bool {
	if x, y := laneOf(a), laneOf(b); x != y {
		return x < y
	}
	return a.Rank < b.Rank || a.Rank == b.Rank && a.ID < b.ID
}

func (q *queues) add(t *Task) { q.lanes[laneOf(t)].add(t) }

func (q *queues) remove(t *Task) bool {
	l := &q.lanes[laneOf(t)]
	i, ok := l.find(t)
	if ok {
		l.remove(i)
	}
	return ok
}

func (q *queues) len() int { return lanesLen(q.lanes[:]) }

// place is a waiting task's place in its queue, recovery or main, from 1.
func (q *queues) place(t *Task) int {
	if t.Phase == Recovering {
		return q.position(t)
	}
	return q.position(t) - lanesLen(q.recovery())
}

// position is a waiting task's place in the order of all lanes, from 1.
func (q *queues) position(t *Task) int {
	l := laneOf(t)
	at, _ := q.lanes[l].find(t)
	return lanesLen(q.lanes[:l]) + at + 1
}
