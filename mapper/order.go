package mapper

import (
	"time"

	"carma/mapper/units"
)

// rankOf is the rank of a waiting task in its lane. Lower ranks go first; equal
// ranks go by task number. The rank is set when the task enters the lane, and
// again when something is learned about the task.
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

// The rank in the order sjf is the submission plus sjfWeight times the expected
// run time, of which at most maxRun counts. So a task whose run is an hour longer
// is overtaken by tasks that come up to sjfWeight hours later, and by no others.
const (
	sjfWeight = 8
	maxRun    = 30 * 24 * time.Hour
)

// resort computes the ranks of the waiting tasks that a filter selects again, and
// moves those that change.
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
