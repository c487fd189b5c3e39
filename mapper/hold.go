package mapper

import "carma/internal/units"

// HoldChanged holds a task that waits, or releases it. One that runs is not held:
// [RequeueRequested] takes it off its GPUs first. A suspended one stays so until it is
// released, whoever asks it back.
type HoldChanged struct {
	At   units.Instant `json:"at"`
	Task TaskID        `json:"task"`
	// Hold; else it is released.
	Hold bool   `json:"hold,omitempty"`
	By   string `json:"by,omitempty"`
	Why  string `json:"why,omitempty"`
}

func (e HoldChanged) when() units.Instant { return e.At }
func (HoldChanged) kind() string          { return "hold-changed" }
func (e HoldChanged) about() TaskID       { return e.Task }

// Hold is who held a task, since when, and why.
type Hold struct {
	Since units.Instant `json:"since"`
	By    string        `json:"by,omitempty"`
	Why   string        `json:"why,omitempty"`
}

// RuleHold: a task is held by somebody.
const RuleHold Rule = "hold"

func (s *State) holdChanged(ev HoldChanged) {
	t := s.tasks[ev.Task]
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

// holdSuspended keeps a task that is suspended, or is about to be, from coming back until it
// is released. One that runs, comes back or is stopping is not held.
func (s *State) holdSuspended(t *Task, ev HoldChanged) {
	if ev.Hold == (t.Hold != nil) || ev.Hold && (t.StopReason.Code != "" || t.Phase != Suspending && t.Phase != Suspended) {
		return
	}
	if t.waiting() {
		s.dequeue(t)
	}
	if t.Hold = nil; ev.Hold {
		t.Hold = &Hold{Since: s.now, By: ev.By, Why: ev.Why}
	}
	if t.waiting() {
		s.enqueue(t, Suspended)
	}
	s.dirty = true
}

// heldWhileSuspended reports whether a task is kept from coming back to a GPU, or was when it was
// asked to stop.
func (t *Task) heldWhileSuspended() bool {
	return t.Hold != nil && t.Suspension != nil && t.Phase != Resuming
}

// heldAfter is the hold of a task whose attempt has ended: it was held while it was
// suspended, or whoever runs its program has to let it go on. nil: there is none.
func (s *State) heldAfter(t *Task, ev Exited) *Hold {
	if t.Hold == nil && ev.Again != "" {
		return &Hold{Since: s.now, Why: ev.Again}
	}
	return t.Hold
}

// holdAgain keeps a task from being launched whose attempt has ended.
func (s *State) holdAgain(t *Task, held *Hold) {
	if held != nil && t.Hold == nil && s.tasks[t.ID] == t && !t.Phase.Placed() {
		t.Hold = held
		s.shelve(t)
	}
}

// hold keeps a task that is not placed from being launched until it is released.
func (s *State) hold(t *Task, by, why string) {
	t.Hold = &Hold{Since: s.now, By: by, Why: why}
	s.shelve(t)
}

// shelve takes a task that waits out of its queue, or out of the line of its group.
// Its place in the limit of the group is free for others.
func (s *State) shelve(t *Task) {
	g := s.groups[t.Group]
	switch t.Phase {
	case Queued, Recovering:
		s.dequeue(t)
		t.Back, t.Phase, t.Rank, t.Behind, t.Seat = t.Phase, Held, 0, 0, nil
		s.dirty = true
		if g != nil {
			g.active--
		}
	case Held:
		if g != nil {
			g.leaveLine(t)
		}
	}
	if g != nil {
		s.advance(g)
	}
}

// leaveLine takes a task out of the line of its group, if it is there.
func (g *group) leaveLine(t *Task) {
	if i, ok := g.line.find(t); ok && g.line.at(i) == t {
		g.line.remove(i)
	}
}
