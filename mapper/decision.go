package mapper

import "encoding/json"

// Decision is something that must now be done. The set is closed.
type Decision interface {
	decisionKind() string
}

// Launch starts an attempt: its memory is booked from this step on.
type Launch struct {
	Task    TaskID  `json:"task"`
	Attempt int     `json:"attempt"`
	Grants  []Grant `json:"grants"`
	// Alone: no other task shares these GPUs.
	Alone bool `json:"alone,omitempty"`
}

// Stop ends a running attempt. Its end comes back as Exited.
type Stop struct {
	Task    TaskID `json:"task"`
	Attempt int    `json:"attempt"`
	Reason  string `json:"reason"`
}

// Requeue says that a task has gone back to a queue, and why. Nothing needs
// to be done; it is for the record.
type Requeue struct {
	Task   TaskID `json:"task"`
	Need   Bytes  `json:"need"`
	Alone  bool   `json:"alone,omitempty"`
	Reason string `json:"reason"`
}

// Release says that a task that waited for others, for its delay or for its
// group goes on: it is queued from now on, or its memory may be looked for.
// Nothing needs to be done for one that is queued; it is for the record.
type Release struct {
	Task TaskID `json:"task"`
}

// Finish says that a task has reached a final phase. The state forgets it
// with this step; Task is its last form.
type Finish struct {
	Task Task `json:"task"`
}

// WakeAt asks for a Woke event at an instant. Only the earliest counts; a new
// WakeAt replaces the one before.
type WakeAt struct {
	At Instant `json:"at"`
}

func (Launch) decisionKind() string  { return "launch" }
func (Stop) decisionKind() string    { return "stop" }
func (Requeue) decisionKind() string { return "requeue" }
func (Release) decisionKind() string { return "release" }
func (Finish) decisionKind() string  { return "finish" }
func (WakeAt) decisionKind() string  { return "wake-at" }

// EncodeDecision returns a decision's kind and its JSON form.
func EncodeDecision(d Decision) (kind string, body []byte, err error) {
	body, err = json.Marshal(d)
	return d.decisionKind(), body, err
}
