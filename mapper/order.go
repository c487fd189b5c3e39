package mapper

import (
	"time"

	"carma/mapper/units"
)

// rankOf is a waiting task's place in its lane: lower goes first, equal ranks
// go by number. It is fixed when the task enters the lane, and again when
// something is learned about it.
func (s *State) rankOf(t *Task) units.Instant {
	if s.opt.Order != OrderSJF || t.Phase == Recovering {
		return 0
	}
	from := t.Submitted
	if t.Behind > 0 {
		from = t.QueuedAt
	}
	run, _ := s.runTime(t)
	return from.Add(sjfWeight * min(run, maxRun))
}

// sjfWeight bounds how far the order sjf lets a task be overtaken: one that
// takes an hour longer is overtaken by those that come up to so many hours
// later.
const (
	sjfWeight = 8
	maxRun    = 30 * 24 * time.Hour
)

// resort gives the waiting tasks that a filter names their places anew.
func (s *State) resort(which func(*Task) bool) {
	for i := range s.queue.lanes {
		var moved []*Task
		for _, t := range s.queue.lanes[i].waiting() {
			if which(t) && s.rankOf(t) != t.Rank {
				moved = append(moved, t)
			}
		}
		for _, t := range moved {
			s.queue.remove(t)
		}
		for _, t := range moved {
			t.Rank = s.rankOf(t)
			s.queue.add(t)
		}
	}
	s.dirty = true
}
