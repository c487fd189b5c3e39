package mapper

import "carma/internal/units"

// Recalled takes a running task off its GPUs, or ends one that is suspended: it is
// stopped, and goes back to the queue. That costs none of its attempts. One that ends well before it could be
// stopped has succeeded.
type Recalled struct {
	At   units.Instant `json:"at"`
	Task TaskID        `json:"task"`
	By   string        `json:"by,omitempty"`
	Why  string        `json:"why,omitempty"`
	// Hold: it is held then.
	Hold bool `json:"hold,omitempty"`
}

func (e Recalled) when() units.Instant { return e.At }
func (Recalled) kind() string          { return "recalled" }
func (e Recalled) about() TaskID       { return e.Task }

// Recall is what becomes of a task that is recalled and stopping.
type Recall struct {
	Hold bool   `json:"hold,omitempty"`
	By   string `json:"by,omitempty"`
	Why  string `json:"why,omitempty"`
}

func (s *State) recalled(ev Recalled) {
	t := s.tasks[ev.Task]
	if t == nil || t.Alive() == nil || t.StopReason.Code != "" {
		return
	}
	t.Recall = &Recall{Hold: ev.Hold, By: ev.By, Why: ev.Why}
	why := Reason{Code: ReasonRecalled, Name: ev.By, Text: ev.Why}
	switch {
	case t.Phase != Away:
		s.stop(t, why)
	case s.script.mayStop(t.ID, why):
		s.stopAway(t, why)
	default:
		s.goOnRunning(t)
	}
}

// recallOver follows the end of an attempt that was recalled.
func (s *State) recallOver(t *Task, a *Attempt) {
	reason, recall := t.StopReason, t.Recall
	a.Blameless = true
	t.Recall, t.StopReason = nil, Reason{}
	s.requeue(t, Queued, reason)
	if recall.Hold && s.tasks[t.ID] == t && !t.Phase.Placed() {
		s.hold(t, recall.By, recall.Why)
	}
}
