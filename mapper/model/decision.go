package model

import (
	"encoding/json"
	"fmt"
	"slices"

	"carma/internal/units"
)

// Decision is something that must now be done. The set is closed.
type Decision interface {
	DecisionKind() string
}

// Launch starts an attempt. Its memory is allocated from this step on.
type Launch struct {
	Task    TaskID  `json:"task"`
	Attempt int     `json:"attempt"`
	Grants  []Grant `json:"grants"`
	// Alone: no other task shares these GPUs.
	Alone bool `json:"alone,omitempty"`
	// Host is the allocation on the machine, or zero if there is none.
	Host HostShare `json:"host,omitzero"`
	// Fills is the task for which the GPU is reserved, or 0. This task is suspended when
	// that one can have all its GPUs.
	Fills TaskID `json:"fills,omitempty"`
}

// Stop ends a running attempt. Its end is reported by Exited.
type Stop struct {
	Task    TaskID `json:"task"`
	Attempt int    `json:"attempt"`
	Reason  Reason `json:"reason,omitzero"`
}

// Requeue records that a task has returned to a queue, and why. The caller need not do
// anything.
type Requeue struct {
	Task  TaskID      `json:"task"`
	Need  units.Bytes `json:"need"`
	Alone bool        `json:"alone,omitempty"`
	// Phase is its queue, or empty in journals of older versions.
	Phase  Phase  `json:"phase,omitempty"`
	Reason Reason `json:"reason,omitzero"`
}

// Release records that a task held for dependencies, its delay or its group is released:
// it is queued from now on, or its memory may be estimated. The caller need not do
// anything for a queued task.
type Release struct {
	Task TaskID `json:"task"`
}

// GrantChanged records that the grants of a running attempt changed. The caller need not
// do anything.
type GrantChanged struct {
	Task    TaskID  `json:"task"`
	Attempt int     `json:"attempt"`
	Grants  []Grant `json:"grants"`
}

// DecisionFormat is the format of this program's decisions. Format 0 has no changes of
// grants; format 1 has them, as [GrantChanged].
const DecisionFormat = 1

// InFormat returns the decisions that exist in an older format.
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

// Finish says that a task has reached a final phase. The state forgets the task in this
// step; Task is its last state.
type Finish struct {
	Task Task `json:"task"`
}

// SetTimer asks for a TimerFired event at an instant. Only the earliest one counts; a new
// SetTimer replaces the previous one.
type SetTimer struct {
	At units.Instant `json:"at"`
}

func (Launch) DecisionKind() string       { return "launch" }
func (Stop) DecisionKind() string         { return "stop" }
func (Requeue) DecisionKind() string      { return "requeue" }
func (GrantChanged) DecisionKind() string { return "regrant" }
func (Release) DecisionKind() string      { return "release" }
func (Finish) DecisionKind() string       { return "finish" }
func (SetTimer) DecisionKind() string     { return "wake-at" }

// EncodeDecision returns a decision's kind and its JSON form.
func EncodeDecision(d Decision) (kind string, body []byte, err error) {
	body, err = json.Marshal(d)
	return d.DecisionKind(), body, err
}

// DecodeDecision is the inverse of EncodeDecision.
func DecodeDecision(kind string, body []byte) (Decision, error) {
	decode, ok := DecisionDecoders[kind]
	if !ok {
		return nil, fmt.Errorf("unknown decision kind %q", kind)
	}
	d, err := decode(body)
	if err != nil {
		return nil, fmt.Errorf("decision %s: %w", kind, err)
	}
	return d, nil
}

var DecisionDecoders = map[string]func([]byte) (Decision, error){
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

// SameDecision reports whether two decisions do the same. It compares codes and figures,
// never words: the texts of a user or program do not count, nor does a sentence that an
// older version recorded as its reason.
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

// sameEnd reports whether a task ended the same way in two records. Predictions do not
// count.
func sameEnd(a, b *Task) bool {
	return a.ID == b.ID && a.Phase == b.Phase && a.Code == b.Code && a.Ended == b.Ended && a.Reason.Equal(b.Reason) &&
		a.OOMs == b.OOMs && a.Failures == b.Failures && a.NotAtFault == b.NotAtFault &&
		slices.EqualFunc(a.Attempts, b.Attempts, sameAttempt)
}

func sameAttempt(a, b Attempt) bool {
	return a.N == b.N && slices.Equal(a.Grants, b.Grants) && a.Class == b.Class && a.Code == b.Code && a.NotAtFault == b.NotAtFault &&
		a.Launched == b.Launched && a.Started == b.Started && a.Ended == b.Ended && a.SuspendedTime == b.SuspendedTime
}

// Idle records that a running task is idle. It is decided when the task has been idle for
// a while, when the task is warned, and when it is busy again.
type Idle struct {
	Task    TaskID `json:"task"`
	Attempt int    `json:"attempt"`
	// Since is the instant since which it is idle, or 0 if it is busy again.
	Since units.Instant `json:"since"`
	// Ends is the instant at which the task will be stopped for it, or 0 if it will not
	// be or that is not known yet.
	Ends units.Instant `json:"ends,omitempty"`
	// Unused: it has never had memory on its GPUs.
	Unused bool `json:"unused,omitempty"`
}

func (Idle) DecisionKind() string { return "idle" }

// GrantExceeded records that a task used more on a GPU than its grant. Booked is its
// present grant.
type GrantExceeded struct {
	Task   TaskID      `json:"task"`
	GPU    GPUID       `json:"gpu"`
	Used   units.Bytes `json:"used"`
	Grant  units.Bytes `json:"grant"`
	Booked units.Bytes `json:"booked"`
}

func (GrantExceeded) DecisionKind() string { return "overuse" }

// Resize changes the allocation of a running attempt on its machine, and with it the
// limits of its container.
type Resize struct {
	Task    TaskID    `json:"task"`
	Attempt int       `json:"attempt"`
	Host    HostShare `json:"host,omitzero"`
}

func (Resize) DecisionKind() string { return "resize" }

// Suspend suspends a running attempt. The answer is [SuspendDone].
type Suspend struct {
	Task    TaskID `json:"task"`
	Attempt int    `json:"attempt"`
	// Host is the host memory allocated for its GPU memory. Lent is the part of its own
	// host memory that others may use meanwhile.
	Host   units.Bytes `json:"host,omitempty"`
	Lent   units.Bytes `json:"lent,omitempty"`
	Reason Reason      `json:"reason,omitzero"`
	// Leave: its program is asked to vacate its GPUs, see [VacatesOnRequest].
	Leave bool `json:"leave,omitempty"`
}

// Resume resumes a suspended attempt. From lists the GPUs that it had, in the same order
// as Grants. The answer is [Resumed].
type Resume struct {
	Task    TaskID  `json:"task"`
	Attempt int     `json:"attempt"`
	From    []GPUID `json:"from"`
	Grants  []Grant `json:"grants"`
	// Alone: no other task shares these GPUs.
	Alone bool `json:"alone,omitempty"`
}

func (Suspend) DecisionKind() string { return "suspend" }

func (Resume) DecisionKind() string { return "resume" }

// sameResume reports whether two resumptions do the same.
func sameResume(a, b Resume) bool {
	return a.Task == b.Task && a.Attempt == b.Attempt && a.Alone == b.Alone && slices.Equal(a.From, b.From) && slices.Equal(a.Grants, b.Grants)
}
