package mapper

import (
	"slices"

	"carma/mapper/ledger"
	"carma/mapper/model"
)

func (s *State) taskUpdated(ev model.TaskUpdated) {
	t := s.TaskByID(ev.Task)
	if t == nil {
		return
	}
	c := &ev.Change
	phase, since := t.Phase, t.QueuedAt
	queued, alive := t.Waiting(), t.Alive() != nil
	if queued {
		s.dequeue(t)
	}
	s.MarkDirty()
	s.updateAnytime(t, c)
	if c.Host != nil && t.Resizable() {
		s.resize(t, *c.Host)
	}
	if c.Host != nil && !alive {
		t.HostMem, t.HostReserve, t.CPUs = c.Host.Memory, c.Host.Reserve, c.Host.CPUs
		t.Request.Normalize()
	}
	if (c.Normalize() || c.Host != nil) && !alive && (queued || phase == model.Held) {
		if c.Normalize() {
			s.learner.UpdateWaiting(t, c)
		}
		if no := s.explainer.Impossible(t.Request, t.Estimate); no != nil && (len(s.MostBookable()) > 0 || t.NoGPU) && s.Recorded().MayEnd(t.ID) {
			s.finish(t, model.Failed, 0, no.Reason)
			return
		}
	}
	if queued {
		s.enqueueAt(t, phase, since)
	}
	if c.After != nil && len(t.Attempts) == 0 {
		s.replaceDependencies(t, c.After.Tasks)
	}
}

// updateAnytime makes the changes that are possible even while the task runs.
func (s *State) updateAnytime(t *model.Task, c *model.TaskUpdate) {
	if c.Priority != nil {
		t.Priority = max(model.Low, min(model.High, *c.Priority))
	}
	if c.Retries != nil {
		t.Retries = max(0, *c.Retries)
	}
	if c.TimeLimit != nil {
		t.TimeLimit = max(0, *c.TimeLimit)
		if a := t.Current(); a != nil && a.Started > 0 && t.TimeLimit > 0 {
			s.SetTimer(s.LimitEnds(t), ledger.Timer{Task: t.ID, Attempt: a.N})
		}
	}
	if c.Slot != nil {
		s.SetSlot(t, *c.Slot)
		s.SetTimer(s.SlotEnds(t), ledger.Timer{})
	}
}

// replaceDependencies replaces the dependencies of a task that has not been launched yet.
// A senseless list changes nothing.
func (s *State) replaceDependencies(t *model.Task, after []model.Dependency) {
	var waits []model.Dependency
	for _, d := range after {
		if !slices.Contains(model.Conditions, d.Condition) || d.Task < 1 || d.Task >= t.ID {
			return
		}
		if of := s.TaskByID(d.Task); of != nil && (d.Condition != model.AfterStarted || !of.HasStarted()) {
			waits = append(waits, d)
		}
	}
	s.queue.Unfollow(t, t.Waits)
	waited := !t.Ready()
	t.After, t.Waits = append([]model.Dependency(nil), after...), waits // a nil list becomes the empty list
	s.queue.Follow(t, waits)
	if t.Ready() && waited {
		s.unblock(t)
	} else if !t.Ready() {
		s.shelve(t)
	}
}
