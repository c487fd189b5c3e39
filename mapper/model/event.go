package model

import (
	"encoding/json"
	"fmt"

	"carma/internal/units"
)

// Event is something that has happened. The set is closed: only this package
// can add to it.
type Event interface {
	When() units.Instant
	Kind() string
	// about returns the task whose record it may change without a decision, or 0.
	about() TaskID
}

// Configured sets the options from now on; invalid ones change nothing. It is the first
// event of a journal, and is sent again whenever the daemon starts with other options.
type Configured struct {
	At      units.Instant `json:"at"`
	Options Options       `json:"options"`
	// Format is the format of the decisions from here on, see [DecisionFormat].
	Format int `json:"format,omitempty"`
	// Program is the version of the program that decides from here on, for people who
	// compare decisions.
	Program string `json:"program,omitempty"`
}

// EngineChanged says whether containers can be launched. While the engine is
// down nothing is placed.
type EngineChanged struct {
	At     units.Instant `json:"at"`
	Up     bool          `json:"up"`
	Reason string        `json:"reason,omitempty"`
}

// Removed says that the records of tasks that have ended were deleted with their output.
// It serves the journal only: the state forgot these tasks at their end.
type Removed struct {
	At    units.Instant `json:"at"`
	Tasks []TaskID      `json:"tasks"`
	By    string        `json:"by,omitempty"`
}

// TimerFired is the answer to a SetTimer: time has passed.
type TimerFired struct {
	At units.Instant `json:"at"`
}

func (e Configured) When() units.Instant    { return e.At }
func (e EngineChanged) When() units.Instant { return e.At }
func (e Removed) When() units.Instant       { return e.At }
func (e TimerFired) When() units.Instant    { return e.At }

func (Configured) about() TaskID    { return 0 }
func (EngineChanged) about() TaskID { return 0 }
func (Removed) about() TaskID       { return 0 } // its records go
func (TimerFired) about() TaskID    { return 0 }

func (Configured) Kind() string    { return "configured" }
func (EngineChanged) Kind() string { return "engine-changed" }
func (Removed) Kind() string       { return "removed" }
func (TimerFired) Kind() string    { return "woke" }

// About returns the task whose record an event may change without a decision, or 0.
func About(ev Event) TaskID { return ev.about() }

// EventTime returns the instant an event carries.
func EventTime(ev Event) units.Instant { return ev.When() }

// EncodeEvent returns an event's kind and its JSON form for a journal.
func EncodeEvent(ev Event) (kind string, body []byte, err error) {
	body, err = json.Marshal(ev)
	return ev.Kind(), body, err
}

// DecodeEvent is the inverse of EncodeEvent.
func DecodeEvent(kind string, body []byte) (Event, error) {
	decode, ok := EventDecoders[kind]
	if !ok {
		return nil, fmt.Errorf("unknown event kind %q", kind)
	}
	ev, err := decode(body)
	if err != nil {
		return nil, fmt.Errorf("event %s: %w", kind, err)
	}
	return ev, nil
}

var EventDecoders = map[string]func([]byte) (Event, error){
	"configured":       decodeAs[Configured],
	"gpus-found":       decodeAs[GPUsFound],
	"hosts-found":      decodeAs[HostsFound],
	"helpers-booked":   decodeAs[HelpersBooked],
	"engine-changed":   decodeAs[EngineChanged],
	"task-submitted":   decodeAs[TaskSubmitted],
	"estimated":        decodeAs[Estimated],
	"sampled":          decodeAs[Sampled],
	"paced":            decodeAs[ThroughputReported],
	"handed":           decodeAs[LaunchAccepted],
	"started":          decodeAs[Started],
	"exited":           decodeAs[Exited],
	"cancel":           decodeAs[Cancel],
	"removed":          decodeAs[Removed],
	"touched":          decodeAs[TerminalInput],
	"suspend-asked":    decodeAs[SuspendAsked],
	"suspended":        decodeAs[SuspendDone],
	"resume-asked":     decodeAs[ResumeAsked],
	"resumed":          decodeAs[Resumed],
	"leaves":           decodeAs[VacatesOnRequest],
	"found-away":       decodeAs[SuspendedOutOfBand],
	"devices-checked":  decodeAs[DevicesChecked],
	"hold-changed":     decodeAs[HoldChanged],
	"recalled":         decodeAs[RequeueRequested],
	"request-changed":  decodeAs[TaskUpdated],
	"reordered":        decodeAs[QueueMoved],
	"gpus-closed":      decodeAs[GPUsCordoned],
	"gpus-reset":       decodeAs[GPUsReset],
	"canary-ended":     decodeAs[CanaryEnded],
	"launching-paused": decodeAs[LaunchingPaused],
	"reserved":         decodeAs[Reserved],
	"unreserved":       decodeAs[Unreserved],
	"pinned":           decodeAs[Pinned],
	"taken-in":         decodeAs[OrphanAdopted],
	"settled":          decodeAs[EndRecovered],
	"woke":             decodeAs[TimerFired],
}

func decodeAs[E Event](body []byte) (Event, error) {
	var ev E
	err := json.Unmarshal(body, &ev)
	return ev, err
}

// CanaryOutcome is the result of the canary.
type CanaryOutcome string

// CanaryEnded is the outcome of the canary for which [State.CanaryDue] asked.
type CanaryEnded struct {
	At      units.Instant `json:"at"`
	Outcome CanaryOutcome `json:"outcome"`
	// Fault is the reason why it failed, or nil if it did not fail.
	Fault *Fault `json:"fault,omitempty"`
}

func (e CanaryEnded) When() units.Instant { return e.At }

func (CanaryEnded) Kind() string { return "canary-ended" }

func (CanaryEnded) about() TaskID { return 0 }

// LaunchingPaused keeps all waiting tasks waiting until launching resumes. Running tasks
// continue.
type LaunchingPaused struct {
	At units.Instant `json:"at"`
	// Closure describes the pause, or is nil to resume launching.
	Closure *Cordon `json:"closure,omitempty"`
}

func (e LaunchingPaused) When() units.Instant { return e.At }

func (LaunchingPaused) Kind() string { return "launching-paused" }

func (LaunchingPaused) about() TaskID { return 0 }

// LaunchAccepted says that the engine has created an attempt's container or scheduled its
// pod, or is busy with something slow, such as pulling its image.
type LaunchAccepted struct {
	At      units.Instant `json:"at"`
	Task    TaskID        `json:"task"`
	Attempt int           `json:"attempt"`
}

func (e LaunchAccepted) When() units.Instant { return e.At }

func (LaunchAccepted) Kind() string { return "handed" }

func (LaunchAccepted) about() TaskID { return 0 }

// Reserved reserves GPUs, or memory on them, for a user or an account from one instant to
// another. The state numbers reservations from 1; the number in the event is ignored. An
// invalid reservation changes nothing.
type Reserved struct {
	At          units.Instant `json:"at"`
	Reservation Reservation   `json:"reservation"`
}

// Unreserved ends a reservation.
type Unreserved struct {
	At units.Instant `json:"at"`
	ID int           `json:"id"`
	By string        `json:"by,omitempty"`
}

func (e Reserved) When() units.Instant { return e.At }

func (e Unreserved) When() units.Instant { return e.At }

func (Reserved) Kind() string { return "reserved" }

func (Unreserved) Kind() string { return "unreserved" }

func (Reserved) about() TaskID { return 0 }

func (Unreserved) about() TaskID { return 0 }

// The outcomes of the canary.
const (
	CanaryStarted CanaryOutcome = "started"
	CanaryFailed  CanaryOutcome = "failed"
	CanaryMissing CanaryOutcome = "missing" // no canary can run here
)
