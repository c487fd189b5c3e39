package mapper

import (
	"encoding/json"
	"fmt"
	"slices"

	"carma/internal/units"
)

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
	// Host is what is booked of the machine; zero: nothing is.
	Host HostShare `json:"host,omitzero"`
	// Fills is the task for which the GPU is held: this one is suspended when that one
	// has all its GPUs. 0: it is not held.
	Fills TaskID `json:"fills,omitempty"`
}

// Stop ends a running attempt. Its end comes back as Exited.
type Stop struct {
	Task    TaskID `json:"task"`
	Attempt int    `json:"attempt"`
	Reason  Reason `json:"reason,omitzero"`
}

// Requeue says that a task has gone back to a queue, and why. Nothing needs
// to be done; it is for the record.
type Requeue struct {
	Task  TaskID      `json:"task"`
	Need  units.Bytes `json:"need"`
	Alone bool        `json:"alone,omitempty"`
	// Phase is its queue; empty in journals of older versions.
	Phase  Phase  `json:"phase,omitempty"`
	Reason Reason `json:"reason,omitzero"`
}

// Release says that a task that waited for others, for its delay or for its
// group goes on: it is queued from now on, or its memory may be looked for.
// Nothing needs to be done for one that is queued; it is for the record.
type Release struct {
	Task TaskID `json:"task"`
}

// GrantChanged changes what is booked for a running attempt. Nothing needs to be
// done; it is for the record.
type GrantChanged struct {
	Task    TaskID  `json:"task"`
	Attempt int     `json:"attempt"`
	Grants  []Grant `json:"grants"`
}

// DecisionFormat is what the decisions of this program tell. 0: changes of
// grants are not among them; 1: they are, as [GrantChanged].
const DecisionFormat = 1

// InFormat are those of some decisions that are told in an older format.
func InFormat(all []Decision, format int) []Decision {
	if format >= 1 {
		return all
	}
	var told []Decision
	for _, d := range all {
		if _, ok := d.(GrantChanged); !ok {
			told = append(told, d)
		}
	}
	return told
}

// Finish says that a task has reached a final phase. The state forgets it
// with this step; Task is its last form.
type Finish struct {
	Task Task `json:"task"`
}

// SetTimer asks for a Woke event at an instant. Only the earliest counts; a new
// SetTimer replaces the one before.
type SetTimer struct {
	At units.Instant `json:"at"`
}

func (Launch) decisionKind() string       { return "launch" }
func (Stop) decisionKind() string         { return "stop" }
func (Requeue) decisionKind() string      { return "requeue" }
func (GrantChanged) decisionKind() string { return "regrant" }
func (Release) decisionKind() string      { return "release" }
func (Finish) decisionKind() string       { return "finish" }
func (SetTimer) decisionKind() string     { return "wake-at" }

// EncodeDecision returns a decision's kind and its JSON form.
func EncodeDecision(d Decision) (kind string, body []byte, err error) {
	body, err = json.Marshal(d)
	return d.decisionKind(), body, err
}

// DecodeDecision is the inverse of EncodeDecision.
func DecodeDecision(kind string, body []byte) (Decision, error) {
	decode, ok := decisionDecoders[kind]
	if !ok {
		return nil, fmt.Errorf("unknown decision kind %q", kind)
	}
	d, err := decode(body)
	if err != nil {
		return nil, fmt.Errorf("decision %s: %w", kind, err)
	}
	return d, nil
}

var decisionDecoders = map[string]func([]byte) (Decision, error){
	"launch":  decodeDecisionAs[Launch],
	"stop":    decodeDecisionAs[Stop],
	"requeue": decodeDecisionAs[Requeue],
	"release": decodeDecisionAs[Release],
	"finish":  decodeDecisionAs[Finish],
	"wake-at": decodeDecisionAs[SetTimer],
	"overuse": decodeDecisionAs[GrantExceeded],
	"idle":    decodeDecisionAs[Idle],
	"regrant": decodeDecisionAs[GrantChanged],
	"suspend": decodeDecisionAs[Suspend],
	"resume":  decodeDecisionAs[Resume],
	"resize":  decodeDecisionAs[Resize],
}

func decodeDecisionAs[D Decision](body []byte) (Decision, error) {
	var d D
	err := json.Unmarshal(body, &d)
	return d, err
}

// SameDecision reports whether two decisions do the same. It compares codes
// and figures, never words: those of a user or a program do not count, nor does
// a sentence that an older version recorded as its reason.
func SameDecision(a, b Decision) bool {
	switch a := a.(type) {
	case Launch:
		b, ok := b.(Launch)
		return ok && a.Task == b.Task && a.Attempt == b.Attempt && a.Alone == b.Alone && a.Host == b.Host && a.Fills == b.Fills && slices.Equal(a.Grants, b.Grants)
	case Stop:
		b, ok := b.(Stop)
		return ok && a.Task == b.Task && a.Attempt == b.Attempt && a.Reason.Equal(b.Reason)
	case Suspend:
		b, ok := b.(Suspend)
		return ok && a.Task == b.Task && a.Attempt == b.Attempt && a.Host == b.Host && a.Lent == b.Lent && a.Leave == b.Leave && a.Reason.Equal(b.Reason)
	case Resume:
		b, ok := b.(Resume)
		return ok && sameResume(a, b)
	case Requeue:
		b, ok := b.(Requeue)
		return ok && a.Task == b.Task && a.Need == b.Need && a.Alone == b.Alone && a.Reason.Equal(b.Reason)
	case GrantChanged:
		b, ok := b.(GrantChanged)
		return ok && a.Task == b.Task && a.Attempt == b.Attempt && slices.Equal(a.Grants, b.Grants)
	case Finish:
		b, ok := b.(Finish)
		return ok && sameEnd(&a.Task, &b.Task)
	}
	return a == b // the others are figures only
}

// sameEnd reports whether a task ended the same way in two accounts of it. What
// was predicted of it does not count.
func sameEnd(a, b *Task) bool {
	return a.ID == b.ID && a.Phase == b.Phase && a.Code == b.Code && a.Ended == b.Ended && a.Reason.Equal(b.Reason) &&
		a.OOMs == b.OOMs && a.Failures == b.Failures && a.NotAtFault == b.NotAtFault &&
		slices.EqualFunc(a.Attempts, b.Attempts, sameAttempt)
}

func sameAttempt(a, b Attempt) bool {
	return a.N == b.N && slices.Equal(a.Grants, b.Grants) && a.Class == b.Class && a.Code == b.Code && a.NotAtFault == b.NotAtFault &&
		a.Launched == b.Launched && a.Started == b.Started && a.Ended == b.Ended && a.SuspendedTime == b.SuspendedTime
}
