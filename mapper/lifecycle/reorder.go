package lifecycle

import (
	"slices"

	"carma/mapper/model"
)

// QueueMoved moves a waiting task before or behind its user's other tasks in its queue.
func (lc *Lifecycle) QueueMoved(ev model.QueueMoved) {
	t := lc.TaskByID(ev.Task)
	if t == nil || !t.Waiting() {
		return
	}
	line := lc.queue.LineOf(t)
	var mine []*model.Task
	for _, other := range line.Waiting() {
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
			lc.placer.Retry(other)
		}
	}
	line.Sort()
	lc.MarkDirty()
}
