package mapper

import "carma/mapper/units"

// HoldChanged holds a task that waits, or releases it. One that runs is not held:
// [Recalled] takes it off its GPUs first.
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
	case t == nil || t.Alive() != nil:
	case ev.Hold && t.Hold == nil:
		s.hold(t, ev.By, ev.Why)
	case !ev.Hold && t.Hold != nil:
		t.Hold = nil
		s.goOn(t)
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
