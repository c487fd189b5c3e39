package mapper

import (
	"cmp"
	"slices"

	"carma/mapper/model"
)

// byPosition is the order within a line: by rank, then in order of submission. A task
// that was put at the back comes after all tasks that had been submitted or put at the
// back before.
func byPosition(x, y *model.Task) int {
	a, b := x.Position(), y.Position()
	if c := cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(max(a.ID, a.Behind), max(b.ID, b.Behind))); c != 0 {
		return c
	}
	if a.Behind > 0 && b.Behind > 0 && a.QueuedAt != b.QueuedAt {
		return cmp.Compare(a.QueuedAt, b.QueuedAt)
	}
	return cmp.Or(model.CompareBools(a.Behind > 0, b.Behind > 0), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Turn, b.Turn), cmp.Compare(x.ID, y.ID))
}

func (s *State) queueMoved(ev model.QueueMoved) {
	t := s.TaskByID(ev.Task)
	if t == nil || !t.Waiting() {
		return
	}
	line := s.queue.lineOf(t)
	var mine []*model.Task
	for _, other := range line.waiting() {
		if other.User == t.User {
			mine = append(mine, other)
		}
	}
	seats := make([]model.QueuePosition, len(mine))
	for i, other := range mine {
		seats[i] = other.Position()
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
		if seats[i] != other.Position() {
			other.Seat = &seats[i]
			s.placer.retry(other)
		}
	}
	line.sort()
	s.MarkDirty()
}
