package mapper

import "carma/internal/units"

// RequeueRequested stops a running or suspended task and requeues it. That costs none of
// its attempts. A task that succeeds before it could be stopped has succeeded.
type RequeueRequested struct {
	At   units.Instant `json:"at"`
	Task TaskID        `json:"task"`
	By   string        `json:"by,omitempty"`
	Why  string        `json:"why,omitempty"`
	// Hold holds it after that.
	Hold bool `json:"hold,omitempty"`
}

func (e RequeueRequested) when() units.Instant { return e.At }
func (RequeueRequested) kind() string          { return "recalled" }
func (e RequeueRequested) about() TaskID       { return e.Task }

// PendingRequeue is stored in a stopping task that will be requeued.
type PendingRequeue struct {
	Hold bool   `json:"hold,omitempty"`
	By   string `json:"by,omitempty"`
	Why  string `json:"why,omitempty"`
}

func (s *State) requeueRequested(ev RequeueRequested) {
	t := s.tasks[ev.Task]
	if t == nil || t.Alive() == nil || t.StopReason.Code != "" {
		return
	}
	t.Recall = &PendingRequeue{Hold: ev.Hold, By: ev.By, Why: ev.Why}
	why := Reason{Code: ReasonRecalled, Name: ev.By, Text: ev.Why}
	switch {
	case t.Phase != Suspended:
		s.preempter.stop(t, why)
	case s.recorded.mayStop(t.ID, why):
		s.stopSuspended(t, why)
	default:
		s.preempter.goOnRunning(t)
	}
}

// requeueEnded requeues a task whose attempt was stopped for that.
func (s *State) requeueEnded(t *Task, a *Attempt) {
	reason, recall := t.StopReason, t.Recall
	a.NotAtFault = true
	t.Recall, t.StopReason = nil, Reason{}
	s.requeue(t, Queued, reason)
	if recall.Hold && s.tasks[t.ID] == t && !t.Phase.Placed() {
		s.hold(t, recall.By, recall.Why)
	}
}
