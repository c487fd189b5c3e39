package mapper

import (
	"cmp"
	"slices"

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
	s.recorded = &recordedDecisions{slices.Clone(decided)}
	defer func() { s.recorded = nil }()
	s.take(ev)
	s.lookAround()
	for len(s.recorded.left) > 0 {
		d := s.recorded.left[0]
		s.recorded.left = s.recorded.left[1:]
		s.force(d)
	}
	s.followUp()
	s.out, s.dirty = nil, true
}

// lookAround is the part of [State.schedule] that makes no decisions of its own.
func (s *State) lookAround() {
	if !s.dirty || s.breakers.engineDown.Code != "" || s.paused != nil || s.now < s.notBefore || s.launchLimitReached() {
		return
	}
	s.learner.learnLoads()
	if !s.recorded.hasRegrants(s.format) {
		s.shrink()
	}
}

// recordedDecisions holds the recorded decisions on an event that have not been applied
// yet. The methods of nil answer for a state that decides itself.
type recordedDecisions struct{ left []model.Decision }

// subject returns the task a decision is about, or 0.
func subject(d model.Decision) model.TaskID {
	switch d := d.(type) {
	case model.Launch:
		return d.Task
	case model.Stop:
		return d.Task
	case model.Requeue:
		return d.Task
	case model.Release:
		return d.Task
	case model.GrantChanged:
		return d.Task
	case model.Suspend:
		return d.Task
	case model.Resume:
		return d.Task
	case model.GrantExceeded:
		return d.Task
	case model.Idle:
		return d.Task
	case model.Resize:
		return d.Task
	case model.Finish:
		return d.Task.ID
	}
	return 0
}

// find returns the index of the first decision of a kind about a task, or -1.
func (c *recordedDecisions) find(kind string, id model.TaskID) int {
	if c == nil {
		return -1
	}
	return slices.IndexFunc(c.left, func(d model.Decision) bool { return d.DecisionKind() == kind && subject(d) == id })
}

// strike removes a decision that has just been applied.
func (c *recordedDecisions) strike(d model.Decision) {
	if i := c.find(d.DecisionKind(), subject(d)); i >= 0 {
		c.left = slices.Delete(c.left, i, i+1)
	}
}

// fate returns the recorded decision about the end of an attempt, a Finish or a Requeue,
// or nil if this program decides.
func (c *recordedDecisions) fate(id model.TaskID) model.Decision {
	i := cmp.Or(c.find(model.Finish{}.DecisionKind(), id)+1, c.find(model.Requeue{}.DecisionKind(), id)+1) - 1
	if i < 0 {
		return nil
	}
	return c.left[i]
}

// mayEnd reports whether a task that has not been launched may end now.
func (c *recordedDecisions) mayEnd(id model.TaskID) bool {
	return c == nil || c.find(model.Finish{}.DecisionKind(), id) >= 0
}

// mayStop reports whether a running task may be stopped now, for a reason. Two reasons
// may coincide, and the recorded one determines what follows.
func (c *recordedDecisions) mayStop(id model.TaskID, why model.Reason) bool {
	if c == nil {
		return true
	}
	i := c.find(model.Stop{}.DecisionKind(), id)
	return i >= 0 && c.left[i].(model.Stop).Reason.Equal(why)
}

// maySuspend reports whether a running task may be suspended now, for a reason.
func (c *recordedDecisions) maySuspend(id model.TaskID, why model.Reason) bool {
	if c == nil {
		return true
	}
	i := c.find(model.Suspend{}.DecisionKind(), id)
	return i >= 0 && c.left[i].(model.Suspend).Reason.Equal(why)
}

// hasRegrants reports whether changes of grants are recorded, so that none must be
// computed.
func (c *recordedDecisions) hasRegrants(format int) bool { return c != nil && format >= 1 }

// goOnRunning cancels the stop of a task.
func (pre *preempter) goOnRunning(t *model.Task) {
	if t.TimedOut { // the limit is checked again
		pre.at(pre.now.Add(1), timer{Task: t.ID, Attempt: t.Last().N, Idle: t.Idle.Ends != 0 && t.Idle.Ends <= pre.now})
	}
	t.TimedOut, t.SlotUsed, t.Overuse, t.Moving, t.Recall = false, false, false, false, nil
}

// meet applies a recorded Finish or Requeue to a task that is neither placed nor queued.
func (s *State) meet(t *model.Task, fate model.Decision) {
	switch d := fate.(type) {
	case model.Finish:
		s.end(t, d.Task.Phase, d.Task.Code, d.Task.Reason)
	case model.Requeue:
		t.NextGrant, t.NextExclusive = d.Need, d.Alone
		t.TimedOut, t.SlotUsed, t.Overuse, t.Moving, t.Recall, t.StopReason = false, false, false, false, nil, model.Reason{}
		s.runAgain(t, cmp.Or(d.Phase, model.Recovering), d.Reason)
	}
}

// force applies a recorded decision that the event did not lead to.
func (s *State) force(d model.Decision) {
	if d, ok := d.(model.SetTimer); ok {
		s.wake = d.At
		return
	}
	t := s.tasks[subject(d)]
	if t == nil {
		return
	}
	switch d := d.(type) {
	case model.Launch:
		s.forceLaunch(t, d)
	case model.Stop:
		s.forceStop(t, d)
	case model.GrantChanged:
		s.forceGrants(t, d)
	case model.Suspend:
		s.forceSuspend(t, d)
	case model.Resume:
		s.forceResume(t, d)
	case model.Release:
		s.forceRelease(t)
	case model.Finish, model.Requeue:
		s.withdrawFrom(t)
		s.meet(t, d)
	}
}

// withdrawFrom removes a task from its GPUs, or from its queue.
func (s *State) withdrawFrom(t *model.Task) {
	switch {
	case t.Phase.Placed():
		a := t.Current()
		a.Ended = cmp.Or(a.Ended, s.now)
		s.users.vacate(t)
		s.moveOut(t, a)
		for _, grant := range a.Grants {
			s.takeOff(s.byID[grant.GPU], t.ID)
		}
		s.unsuspend(t, a)
	case t.Phase == model.Suspended:
		if t.Waiting() {
			s.dequeue(t)
		}
		a := t.Last()
		a.Ended = cmp.Or(a.Ended, s.now)
		s.takesAll(t)
		s.moveOut(t, a)
		s.unsuspend(t, a)
	case t.Waiting():
		s.dequeue(t)
	}
}

// dequeue removes a task from its queue.
func (s *State) dequeue(t *model.Task) {
	s.queue.waiting.remove(t)
	s.queue.onDequeue(t)
	s.preempter.clearNominations(t)
	s.users.make(t.UserAccount()).waiting--
	if s.queue.head.Task == t.ID {
		s.queue.head = headReservation{}
	}
}

// forceRelease queues a task held for dependencies, its delay or its group.
func (s *State) forceRelease(t *model.Task) {
	t.Waits, t.Due, t.Hold = nil, 0, nil
	if t.Phase != model.Held {
		return // its estimate follows
	}
	g := s.queue.groups[t.Group]
	if g != nil {
		g.leaveLine(t)
	}
	s.queueUp(t, g)
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
		s.forceRelease(t)
	}
	s.dequeue(t)
	s.users.make(t.UserAccount()).waiting++ // book decrements it
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
	if g := s.byID[grant.GPU]; g != nil {
		return g
	}
	g := &model.GPU{GPUInfo: model.GPUInfo{ID: grant.GPU, Capacity: grant.Memory}, Missing: true}
	next := s.nextInRing()
	s.gpus, s.byID[g.ID] = append(s.gpus, g), g
	slices.SortFunc(s.gpus, compareGPUs)
	s.placer.setRing(next)
	s.inventoryChanged()
	return g
}

// forceStop stops a task for the recorded reason.
func (s *State) forceStop(t *model.Task, d model.Stop) {
	if t.Alive() == nil || t.StopReason.Code != "" {
		return
	}
	code := d.Reason.StopCode()
	if t.SetStopFlags(code); code == model.ReasonRecalled || code == model.ReasonMoved {
		t.Recall = &model.PendingRequeue{}
	}
	if t.Phase == model.Suspended {
		s.stopSuspended(t, d.Reason)
		return
	}
	s.preempter.halt(t, d.Reason)
}

// forceGrants applies the recorded grants of a running attempt.
func (s *State) forceGrants(t *model.Task, d model.GrantChanged) {
	a := t.Current()
	if a == nil || a.N != d.Attempt {
		return
	}
	for _, grant := range d.Grants {
		g := s.byID[grant.GPU]
		r := (*model.Resident)(nil)
		if g != nil {
			r = g.Resident(t.ID)
		}
		if r == nil {
			continue
		}
		if r.Grant != grant.Memory {
			s.users.rebook(t, g, grant.Memory)
			g.Bookable = max(g.Bookable, g.Reserved)
		}
		if r.Used <= r.Grant {
			r.OverSince = 0
		}
	}
}
