package mapper

import (
	"cmp"

	"carma/mapper/model"
)

// admit queues a task without unmet dependencies. If its group is at its limit, the task
// is held until the group has room.
func (s *State) admit(t *model.Task) {
	if !s.queue.HoldForGroup(t) {
		s.queueUp(t)
		return
	}
	s.advance(t.Group)
	if t.Phase == model.Estimating {
		t.Phase = model.Held
	}
}

// advance queues the held tasks that the limit of a group allows, in order of
// number.
func (s *State) advance(group string) {
	for t := s.queue.NextOfGroup(group); t != nil; t = s.queue.NextOfGroup(group) {
		s.queueUp(t)
	}
}

// queueUp queues a task, with the memory estimate learned while it was held.
func (s *State) queueUp(t *model.Task) {
	s.queue.CountActive(t, 1)
	if t.Phase == model.Held {
		if len(t.Attempts) == 0 { // else it has learned what it needs
			s.learner.SetFirstGrant(t)
		}
		s.Decide(model.Release{Task: t.ID})
	}
	back := cmp.Or(t.Back, model.Queued)
	t.Back = ""
	s.enqueue(t, back)
}
