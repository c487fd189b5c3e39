package mapper

import (
	"cmp"
	"slices"

	"carma/mapper/ledger"
	"carma/mapper/model"
)

// Follow applies ev with the decisions that were recorded for it, regardless of what this
// program would decide. With it an upgraded daemon takes over what the older program has
// already carried out.
//
// It applies the event as [State.Step] does. Where that leads to a decision about a task,
// the recorded decision replaces it. A stop that was not recorded does not happen. The
// remaining recorded decisions, above all launches, are applied at the end, without a
// check whether they fit. The queues are not scheduled; the next Step does that.
func (s *State) Follow(ev model.Event, decided []model.Decision) {
	s.SetRecorded(decided)
	defer s.ClearRecorded()
	s.take(ev)
	s.lookAround()
	for d := s.Recorded().Next(); d != nil; d = s.Recorded().Next() {
		s.force(d)
	}
	s.lifecycle.FollowUp()
	s.ClearDecisions()
	s.MarkDirty()
}

// lookAround is the part of [State.schedule] that makes no decisions of its own.
func (s *State) lookAround() {
	if !s.Dirty() || s.breakers.IsEngineDown() || s.paused != nil || s.Now() < s.notBefore || s.launchLimitReached() {
		return
	}
	s.learner.LearnLoads()
	if !s.Recorded().HasRegrants(s.DecisionFormat()) {
		s.shrink()
	}
}

// force applies a recorded decision that the event did not lead to.
func (s *State) force(d model.Decision) {
	if d, ok := d.(model.SetTimer); ok {
		s.SetWake(d.At)
		return
	}
	t := s.TaskByID(ledger.Subject(d))
	if t == nil {
		return
	}
	switch d := d.(type) {
	case model.Launch:
		s.forceLaunch(t, d)
	case model.Stop:
		s.lifecycle.ForceStop(t, d)
	case model.GrantChanged:
		s.forceGrants(t, d)
	case model.Suspend:
		s.forceSuspend(t, d)
	case model.Resume:
		s.forceResume(t, d)
	case model.Release:
		s.lifecycle.ForceRelease(t)
	case model.Finish, model.Requeue:
		s.withdrawFrom(t)
		s.lifecycle.ApplyRecordedEnd(t, d)
	}
}

// withdrawFrom removes a task from its GPUs, or from its queue.
func (s *State) withdrawFrom(t *model.Task) {
	switch {
	case t.Phase.Placed():
		a := t.Current()
		a.Ended = cmp.Or(a.Ended, s.Now())
		s.users.Release(t)
		s.ReleaseHost(t, a)
		for _, grant := range a.Grants {
			s.takeOff(s.GPU(grant.GPU), t.ID)
		}
		s.unsuspend(t, a)
	case t.Phase == model.Suspended:
		if t.Waiting() {
			s.lifecycle.Dequeue(t)
		}
		a := t.Last()
		a.Ended = cmp.Or(a.Ended, s.Now())
		s.takesAll(t)
		s.ReleaseHost(t, a)
		s.unsuspend(t, a)
	case t.Waiting():
		s.lifecycle.Dequeue(t)
	}
}

// forceLaunch repeats a recorded launch, even if its grants exceed what is free now.
func (s *State) forceLaunch(t *model.Task, d model.Launch) {
	last := t.Last()
	if t.Alive() != nil || last != nil && d.Attempt <= last.N || len(d.Grants) != t.GPUs {
		return // the recorded history contradicts itself; Audit will report it
	}
	if t.Phase == model.Estimating {
		t.Phase, t.NextExclusive = model.Held, t.Exclusive // for a later attempt; it is not estimated any more
	}
	if t.Phase == model.Held {
		s.lifecycle.ForceRelease(t)
	}
	s.lifecycle.Dequeue(t)
	s.users.Enqueued(t) // book decrements it
	gpus := make([]*model.GPU, len(d.Grants))
	for i, grant := range d.Grants {
		gpus[i] = s.page(grant)
	}
	s.book(t, gpus, slices.Clone(d.Grants), d.Host, d.Alone, d.Fills)
	t.Last().N = d.Attempt
	for _, g := range gpus {
		g.Bookable = max(g.Bookable, g.Reserved)
	}
}

// page returns the ledger's entry of a GPU, and adds it if there is none: the machine may
// have lost the GPU since.
func (s *State) page(grant model.Grant) *model.GPU {
	if g := s.GPU(grant.GPU); g != nil {
		return g
	}
	g := &model.GPU{GPUInfo: model.GPUInfo{ID: grant.GPU, Capacity: grant.Memory}, Missing: true}
	next := s.placer.NextInRing()
	s.AddGPU(g)
	s.placer.InventoryChanged(next)
	return g
}

// forceGrants applies the recorded grants of a running attempt.
func (s *State) forceGrants(t *model.Task, d model.GrantChanged) {
	a := t.Current()
	if a == nil || a.N != d.Attempt {
		return
	}
	for _, grant := range d.Grants {
		g := s.GPU(grant.GPU)
		r := (*model.Resident)(nil)
		if g != nil {
			r = g.Resident(t.ID)
		}
		if r == nil {
			continue
		}
		if r.Grant != grant.Memory {
			s.users.Rebook(t, g, grant.Memory)
			g.Bookable = max(g.Bookable, g.Reserved)
		}
		if r.Used <= r.Grant {
			r.OverSince = 0
		}
	}
}
