package mapper

import (
	"cmp"
	"slices"

	"carma/internal/units"
)

// QueueMoved moves a waiting task before or behind the other waiting tasks of its user
// with the same priority. They exchange their positions in the queue among themselves, so
// no task of another user waits longer or shorter because of it.
type QueueMoved struct {
	At   units.Instant `json:"at"`
	Task TaskID        `json:"task"`
	// Last moves it behind the others; otherwise it becomes the first.
	Last bool   `json:"last,omitempty"`
	By   string `json:"by,omitempty"`
}

func (e QueueMoved) when() units.Instant { return e.At }
func (QueueMoved) kind() string          { return "reordered" }
func (e QueueMoved) about() TaskID       { return e.Task }

// queuePosition is a position in a line. A task has its own, or another's after its user
// has moved one of their tasks.
type queuePosition struct {
	Rank units.Instant `json:"rank,omitempty"`
	// ID is the number of the task to which the position originally belongs.
	ID       TaskID        `json:"id"`
	Behind   TaskID        `json:"behind,omitempty"`
	QueuedAt units.Instant `json:"queued_at,omitempty"`
	// Turn orders tasks with the same position: a task that ran meanwhile is back in its
	// own position, which another task has got.
	Turn int `json:"turn,omitempty"`
}

func (t *Task) position() queuePosition {
	if t.Seat != nil {
		return *t.Seat
	}
	return queuePosition{t.Rank, t.ID, t.Behind, t.QueuedAt, 0}
}

// byPosition is the order within a line: by rank, then in order of submission. A task
// that was put at the back comes after all tasks that had been submitted or put at the
// back before.
func byPosition(x, y *Task) int {
	a, b := x.position(), y.position()
	if c := cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(max(a.ID, a.Behind), max(b.ID, b.Behind))); c != 0 {
		return c
	}
	if a.Behind > 0 && b.Behind > 0 && a.QueuedAt != b.QueuedAt {
		return cmp.Compare(a.QueuedAt, b.QueuedAt)
	}
	return cmp.Or(compareBool(a.Behind > 0, b.Behind > 0), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Turn, b.Turn), cmp.Compare(x.ID, y.ID))
}

func (s *State) queueMoved(ev QueueMoved) {
	t := s.tasks[ev.Task]
	if t == nil || !t.waiting() {
		return
	}
	line := s.queue.waiting.lanes[laneOf(t)].lineOf(t)
	var mine []*Task
	for _, other := range line.waiting() {
		if other.User == t.User {
			mine = append(mine, other)
		}
	}
	seats := make([]queuePosition, len(mine))
	for i, other := range mine {
		seats[i] = other.position()
		if i > 0 && seats[i].ID == seats[i-1].ID {
			seats[i].Turn = max(seats[i].Turn, seats[i-1].Turn+1)
		}
	}
	i := slices.Index(mine, t)
	order := slices.Delete(slices.Clone(mine), i, i+1)
	if ev.Last {
		order = append(order, t)
	} else {
		order = slices.Insert(order, 0, t)
	}
	for i, other := range order {
		if seats[i] != other.position() {
			other.Seat = &seats[i]
			s.placer.retry(other)
		}
	}
	slices.SortFunc(line.waiting(), byPosition)
	s.dirty = true
}
