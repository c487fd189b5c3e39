package mapper

import "carma/mapper/model"

func (s *State) holdChanged(ev model.HoldChanged) {
	t := s.TaskByID(ev.Task)
	switch {
	case t == nil:
	case t.Alive() != nil:
		s.holdSuspended(t, ev)
	case ev.Hold && t.Hold == nil:
		s.hold(t, ev.By, ev.Why)
	case !ev.Hold && t.Hold != nil:
		t.Hold = nil
		s.unblock(t)
	}
}

// holdSuspended holds a suspending or suspended task, or releases it. A running, resuming
// or stopping task is not held.
func (s *State) holdSuspended(t *model.Task, ev model.HoldChanged) {
	if ev.Hold == (t.Hold != nil) || ev.Hold && (t.StopReason.Code != "" || t.Phase != model.Suspending && t.Phase != model.Suspended) {
		return
	}
	if t.Waiting() {
		s.dequeue(t)
	}
	if t.Hold = nil; ev.Hold {
		t.Hold = &model.Hold{Since: s.Now(), By: ev.By, Why: ev.Why}
	}
	if t.Waiting() {
		s.enqueue(t, model.Suspended)
	}
	s.MarkDirty()
}

// heldAfter returns the hold of a task whose attempt has ended, or nil: the hold from its
// suspension, or a hold until the program's caller releases it.
func (s *State) heldAfter(t *model.Task, ev model.Exited) *model.Hold {
	if t.Hold == nil && ev.Again != "" {
		return &model.Hold{Since: s.Now(), Why: ev.Again}
	}
	return t.Hold
}

// holdAgain holds a task after its attempt has ended.
func (s *State) holdAgain(t *model.Task, held *model.Hold) {
	if held != nil && t.Hold == nil && s.TaskByID(t.ID) == t && !t.Phase.Placed() {
		t.Hold = held
		s.shelve(t)
	}
}

// hold holds a task that is not placed until it is released.
func (s *State) hold(t *model.Task, by, why string) {
	t.Hold = &model.Hold{Since: s.Now(), By: by, Why: why}
	s.shelve(t)
}

// shelve removes a waiting task from its queue, or from the line of its group. It no
// longer counts for the limit of the group.
func (s *State) shelve(t *model.Task) {
	switch t.Phase {
	case model.Queued, model.Recovering:
		s.dequeue(t)
		t.Back, t.Phase, t.Rank, t.Behind, t.Seat = t.Phase, model.Held, 0, 0, nil
		s.MarkDirty()
		s.queue.CountActive(t, -1)
	case model.Held:
		s.queue.LeaveGroupLine(t)
	}
	s.advance(t.Group)
}
