package mapper

import (
	"slices"

	"carma/internal/units"
)

// SuspendAsked asks for a running task to be suspended until [ResumeAsked]. It is ignored
// if that is not possible, see [State.CannotSuspend].
type SuspendAsked struct {
	At   units.Instant `json:"at"`
	Task TaskID        `json:"task"`
	By   string        `json:"by,omitempty"`
	Why  string        `json:"why,omitempty"`
}

// ResumeAsked lets a suspended task resume when there is room.
type ResumeAsked struct {
	At   units.Instant `json:"at"`
	Task TaskID        `json:"task"`
	By   string        `json:"by,omitempty"`
}

// SuspendDone answers [Suspend]: the attempt is suspended, or continues on its GPUs.
type SuspendDone struct {
	At      units.Instant `json:"at"`
	Task    TaskID        `json:"task"`
	Attempt int           `json:"attempt"`
	// Failure says why it continues, or is empty if it is suspended.
	Failure string `json:"failure,omitempty"`
}

// Resumed answers [Resume]: the attempt runs again, or stays suspended.
type Resumed struct {
	At      units.Instant `json:"at"`
	Task    TaskID        `json:"task"`
	Attempt int           `json:"attempt"`
	// Failure says why it stays suspended, or is empty if it runs.
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

func (Suspend) decisionKind() string { return "suspend" }

func (Resume) decisionKind() string { return "resume" }

// SuspendKind says how tasks on a GPU can be suspended.
type SuspendKind string

// The kinds of suspending.
const (
	SuspendNever SuspendKind = ""
	SuspendHere  SuspendKind = "here" // it resumes on the same GPU
	SuspendMove  SuspendKind = "move" // or on another of the same kind
)

// Suspension is the state of a task that is suspending, suspended or resuming.
type Suspension struct {
	By  string `json:"by,omitempty"`
	Why string `json:"why,omitempty"`
	// Reason says why carma suspended it, or is zero if somebody asked for it.
	Reason Reason `json:"reason,omitzero"`
	// Since is the instant at which it left its GPUs, or 0 before.
	Since units.Instant `json:"since,omitempty"`
	// From holds its grants before, Host the host memory allocated for its GPU memory.
	From []Grant     `json:"from,omitempty"`
	Host units.Bytes `json:"host,omitempty"`
	// InPlace: its program is asked to vacate its GPUs, and resumes only on these GPUs.
	InPlace bool `json:"left,omitempty"`
	// Lent is the part of its host memory that others may use meanwhile.
	Lent units.Bytes `json:"lent,omitempty"`
	// Automatic: it resumes when there is room. Otherwise it waits for ResumeAsked.
	Automatic bool `json:"back,omitempty"`
	// Failures counts how often it could not resume.
	Failures int `json:"failures,omitempty"`
}

// RuleSuspended: a suspended task cannot resume on this GPU.
const RuleSuspended Rule = "suspended"

// Why a task is not suspended, or has not resumed.
const (
	ReasonNotRunning    ReasonCode = "not-running"    // only a task that runs on GPUs can be suspended
	ReasonSeveralGPUs   ReasonCode = "several-gpus"   // it has Count GPUs: processes that talk to each other cannot be suspended
	ReasonCannotSuspend ReasonCode = "cannot-suspend" // the driver cannot suspend programs on GPU
	ReasonMPSClient     ReasonCode = "mps-client"     // MPS shares GPU among its tasks
	ReasonHostFull      ReasonCode = "host-full"      // Need of host memory would hold it, Have is free
	ReasonSuspended     ReasonCode = "suspended"      // Name suspended it; Text is why, if they said so
	ReasonNotSuspended  ReasonCode = "not-suspended"  // it continues: Text
	ReasonNotResumed    ReasonCode = "not-resumed"    // it could not resume Count times: Text
)

// sameResume reports whether two resumptions do the same.
func sameResume(a, b Resume) bool {
	return a.Task == b.Task && a.Attempt == b.Attempt && a.Alone == b.Alone && slices.Equal(a.From, b.From) && slices.Equal(a.Grants, b.Grants)
}

// preemptor returns the task for which a task is suspended, or 0.
func (a *Suspension) preemptor() TaskID {
	switch a.Reason.Code {
	case ReasonMadeWay, ReasonSwapped, ReasonFilled:
		return a.Reason.Task
	}
	return 0
}
