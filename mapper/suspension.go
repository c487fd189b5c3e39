package mapper

import (
	"slices"

	"carma/internal/units"
)

// SuspendAsked asks for a running task to be suspended until [ResumeAsked]. It is
// ignored where that cannot be, see [State.CannotSuspend].
type SuspendAsked struct {
	At   units.Instant `json:"at"`
	Task TaskID        `json:"task"`
	By   string        `json:"by,omitempty"`
	Why  string        `json:"why,omitempty"`
}

// ResumeAsked lets a suspended task come back when there is room.
type ResumeAsked struct {
	At   units.Instant `json:"at"`
	Task TaskID        `json:"task"`
	By   string        `json:"by,omitempty"`
}

// SuspendDone answers [Suspend]: the attempt is off its GPUs, or goes on there.
type SuspendDone struct {
	At      units.Instant `json:"at"`
	Task    TaskID        `json:"task"`
	Attempt int           `json:"attempt"`
	// Failure is why it goes on; empty: it is suspended.
	Failure string `json:"failure,omitempty"`
}

// Resumed answers [Resume]: the attempt runs again, or stays suspended.
type Resumed struct {
	At      units.Instant `json:"at"`
	Task    TaskID        `json:"task"`
	Attempt int           `json:"attempt"`
	// Failure is why it stays suspended; empty: it runs.
	Failure string `json:"failure,omitempty"`
}

func (e SuspendAsked) when() units.Instant { return e.At }

func (e ResumeAsked) when() units.Instant { return e.At }

func (e SuspendDone) when() units.Instant { return e.At }

func (e Resumed) when() units.Instant { return e.At }

func (SuspendAsked) kind() string { return "suspend-asked" }

func (ResumeAsked) kind() string { return "resume-asked" }

func (SuspendDone) kind() string { return "suspended" }

func (Resumed) kind() string { return "resumed" }

func (e SuspendAsked) about() TaskID { return e.Task }

func (e ResumeAsked) about() TaskID { return e.Task }

func (e SuspendDone) about() TaskID { return e.Task }

func (e Resumed) about() TaskID { return e.Task }

// Suspend takes a running attempt off its GPUs. It is answered by Suspended.
type Suspend struct {
	Task    TaskID `json:"task"`
	Attempt int    `json:"attempt"`
	// Host is the host memory that was booked for what it has on the GPUs. Lent is
	// what others may have of its own part meanwhile.
	Host   units.Bytes `json:"host,omitempty"`
	Lent   units.Bytes `json:"lent,omitempty"`
	Reason Reason      `json:"reason,omitzero"`
	// Leave: its program is asked to leave by itself, see [VacatesOnRequest].
	Leave bool `json:"leave,omitempty"`
}

// Resume puts a suspended attempt on GPUs again. From are those that it had, in the
// same order. It is answered by Resumed.
type Resume struct {
	Task    TaskID  `json:"task"`
	Attempt int     `json:"attempt"`
	From    []GPUID `json:"from"`
	Grants  []Grant `json:"grants"`
	// Alone: no other task shares these GPUs.
	Alone bool `json:"alone,omitempty"`
}

func (Suspend) decisionKind() string { return "suspend" }

func (Resume) decisionKind() string { return "resume" }

// SuspendKind says what can be done with a task on a GPU without ending it.
type SuspendKind string

// The kinds of suspending.
const (
	SuspendNever SuspendKind = ""
	SuspendHere  SuspendKind = "here" // it comes back to the same GPU
	SuspendMove  SuspendKind = "move" // or to another of the same kind
)

// Suspension is the state of a task that is suspending, suspended or resuming.
type Suspension struct {
	By  string `json:"by,omitempty"`
	Why string `json:"why,omitempty"`
	// Reason is why carma suspended it by itself; zero: somebody asked for it.
	Reason Reason `json:"reason,omitzero"`
	// Since is when it came off its GPUs; 0: not yet.
	Since units.Instant `json:"since,omitempty"`
	// From is what it had there, Host the host memory booked for that.
	From []Grant     `json:"from,omitempty"`
	Host units.Bytes `json:"host,omitempty"`
	// Left: its program is asked to leave by itself, and comes back only to the GPUs
	// that it had.
	InPlace bool `json:"left,omitempty"`
	// Lent is what others may have meanwhile of the host memory that is booked for it.
	Lent units.Bytes `json:"lent,omitempty"`
	// Back: it comes back when there is room. Else it waits for ResumeAsked.
	Automatic bool `json:"back,omitempty"`
	// Failures counts how often it could not come back.
	Failures int `json:"failures,omitempty"`
}

// RuleSuspended: a suspended task cannot come back to this GPU.
const RuleSuspended Rule = "suspended"

// Why a task is not suspended, or is not back.
const (
	ReasonNotRunning    ReasonCode = "not-running"    // only a task that runs on GPUs can be suspended
	ReasonSeveralGPUs   ReasonCode = "several-gpus"   // it has Count GPUs: processes that talk to each other cannot be suspended
	ReasonCannotSuspend ReasonCode = "cannot-suspend" // the driver cannot on GPU
	ReasonMPSClient     ReasonCode = "mps-client"     // it shares GPU by MPS
	ReasonHostFull      ReasonCode = "host-full"      // Need of host memory would hold it, Have is free
	ReasonSuspended     ReasonCode = "suspended"      // Name suspended it; Text is why, if they said so
	ReasonNotSuspended  ReasonCode = "not-suspended"  // it goes on: Text
	ReasonNotResumed    ReasonCode = "not-resumed"    // Count times it could not come back: Text
)

// sameResume reports whether two resumptions do the same.
func sameResume(a, b Resume) bool {
	return a.Task == b.Task && a.Attempt == b.Attempt && a.Alone == b.Alone && slices.Equal(a.From, b.From) && slices.Equal(a.Grants, b.Grants)
}

// preemptor is the task for which one is suspended; 0: there is none.
func (a *Suspension) preemptor() TaskID {
	switch a.Reason.Code {
	case ReasonMadeWay, ReasonSwapped, ReasonFilled:
		return a.Reason.Task
	}
	return 0
}
