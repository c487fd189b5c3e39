package mapper

import "carma/internal/units"

// HoldChanged holds or releases a waiting task. A running task cannot be held;
// [RequeueRequested] must first take it off its GPUs. A held suspended task stays
// suspended until it is released, even if somebody asks to resume it.
type HoldChanged struct {
	At   units.Instant `json:"at"`
	Task TaskID        `json:"task"`
	// Hold holds the task; otherwise it is released.
	Hold bool   `json:"hold,omitempty"`
	By   string `json:"by,omitempty"`
	Why  string `json:"why,omitempty"`
}

func (e HoldChanged) when() units.Instant { return e.At }
func (HoldChanged) kind() string          { return "hold-changed" }
func (e HoldChanged) about() TaskID       { return e.Task }

// Hold says who held a task, since when, and why.
type Hold struct {
	Since units.Instant `json:"since"`
	By    string        `json:"by,omitempty"`
	Why   string        `json:"why,omitempty"`
}

// RuleHold: somebody holds the task.
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

// holdSuspended holds a suspending or suspended task, or releases it. A running, resuming
// or stopping task is not held.
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

// heldWhileSuspended reports whether a hold keeps a task from resuming, or did so when it
// was asked to stop.
func (t *Task) heldWhileSuspended() bool {
	return t.Hold != nil && t.Suspension != nil && t.Phase != Resuming
}

// heldAfter returns the hold of a task whose attempt has ended, or nil: the hold from its
// suspension, or a hold until the program's caller releases it.
func (l *ledger) heldAfter(t *Task, ev Exited) *Hold {
	if t.Hold == nil && ev.Again != "" {
		return &Hold{Since: l.now, Why: ev.Again}
	}
	return t.Hold
}

// holdAgain holds a task after its attempt has ended.
func (s *State) holdAgain(t *Task, held *Hold) {
	if held != nil && t.Hold == nil && s.tasks[t.ID] == t && !t.Phase.Placed() {
		t.Hold = held
		s.shelve(t)
	}
}

// hold holds a task that is not placed until it is released.
func (s *State) hold(t *Task, by, why string) {
	t.Hold = &Hold{Since: s.now, By: by, Why: why}
	s.shelve(t)
}

// shelve removes a waiting task from its queue, or from the line of its group. It no
// longer counts for the limit of the group.
func (s *State) shelve(t *Task) {
	g := s.queue.groups[t.Group]
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

// leaveLine removes a task from the line of its group, if it is there.
func (g *group) leaveLine(t *Task) {
	if i, ok := g.line.find(t); ok && g.line.at(i) == t {
		g.line.remove(i)
	}
}
