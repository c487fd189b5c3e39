package mapper

import (
	"encoding/json"
	"fmt"

	"carma/internal/units"
)

// Event is something that has happened. The set is closed: only this package
// can add to it.
type Event interface {
	when() units.Instant
	kind() string
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

// GPUsFound lists the GPUs of the machine. A GPU missing from the list keeps its tasks
// and gets no new ones.
type GPUsFound struct {
	At   units.Instant `json:"at"`
	GPUs []GPUInfo     `json:"gpus"`
}

// EngineChanged says whether containers can be launched. While the engine is
// down nothing is placed.
type EngineChanged struct {
	At     units.Instant `json:"at"`
	Up     bool          `json:"up"`
	Reason string        `json:"reason,omitempty"`
}

// TaskSubmitted adds a task. Its number must be above all earlier ones; otherwise the
// event is treated as a repetition and ignored.
type TaskSubmitted struct {
	At units.Instant `json:"at"`
	Request
}

// Estimated gives a submitted task its memory estimate and queues it.
type Estimated struct {
	At       units.Instant `json:"at"`
	Task     TaskID        `json:"task"`
	Estimate Estimate      `json:"estimate"`
	Expected Expected      `json:"expected"`
}

// Sampled carries the monitor's readings of some or all GPUs.
type Sampled struct {
	At   units.Instant `json:"at"`
	GPUs []GPUSample   `json:"gpus"`
	// Hosts are the machines whose memory is allocated by carma.
	Hosts []HostSample `json:"hosts,omitempty"`
}

// ThroughputReported carries the speeds of tasks according to their output.
type ThroughputReported struct {
	At    units.Instant `json:"at"`
	Tasks []Throughput  `json:"tasks"`
}

// Throughput is the measured speed of an attempt.
type Throughput struct {
	Task    TaskID `json:"task"`
	Attempt int    `json:"attempt"`
	// Rate is work per second, in a unit of the task's own; a mean from Since to
	// the event's instant. Error is its standard deviation, relative to Rate.
	Rate  float64       `json:"rate"`
	Error float64       `json:"error,omitempty"`
	Since units.Instant `json:"since"`
	// Unit names the unit, if it may change within the attempt.
	Unit string `json:"unit,omitempty"`
	// Steps: the unit is training steps.
	Steps bool `json:"steps,omitempty"`
	// Share is the part of the work that is done, 0 to 1, or 0 if not known.
	Share float64 `json:"share,omitempty"`
	// Alone is the earlier rate while the task was alone on its GPUs, with its relative
	// error, or 0 if not known. It serves programs whose output is too infrequent to show
	// that rate before other tasks join.
	Alone      float64 `json:"alone,omitempty"`
	AloneError float64 `json:"alone_error,omitempty"`
}

// Started says that an attempt's container is running.
type Started struct {
	At      units.Instant `json:"at"`
	Task    TaskID        `json:"task"`
	Attempt int           `json:"attempt"`
}

// Exited says that an attempt has ended, or could not be started.
type Exited struct {
	At      units.Instant `json:"at"`
	Task    TaskID        `json:"task"`
	Attempt int           `json:"attempt"`
	Class   Class         `json:"class"`
	Code    int           `json:"code"`
	// Finished is the instant at which the container itself ended, if known to be earlier
	// because no daemon was running then, or 0 for now.
	Finished units.Instant `json:"finished,omitempty"`
	// Peak is the highest memory seen in use on one GPU, or 0 if unknown.
	Peak units.Bytes `json:"peak,omitempty"`
	// HostPeak is the highest host memory seen in use, or 0 if unknown.
	HostPeak units.Bytes `json:"host_peak,omitempty"`
	// Filled: it took most of a card at its start, needed or not. So its peak does not
	// show what it needs.
	Filled bool `json:"filled,omitempty"`
	// Demand is, after a GPU OOM, the known demand of the task on that GPU (in use plus
	// refused), or 0 if unknown.
	Demand  units.Bytes `json:"demand,omitempty"`
	Message string      `json:"message,omitempty"`
	// Unconfirmed: only one source reports a GPU OOM, such as a text of the program. The
	// task gets more memory for it, but no exclusive GPU.
	Unconfirmed bool `json:"unconfirmed,omitempty"`
	// Again is set if the caller decides whether the task's program runs again. Failures
	// of the program are then requeued regardless of Retries, and the task is held before
	// each further attempt until it is released. Again says what it waits for.
	Again string `json:"again,omitempty"`
	// Fault is set, with ExitInfrastructure, if the attempt could not be started and the
	// task is not at fault.
	Fault *Fault `json:"fault,omitempty"`
}

// Cancel asks for a task to end, queued or running.
type Cancel struct {
	At     units.Instant `json:"at"`
	Task   TaskID        `json:"task"`
	Reason string        `json:"reason,omitempty"`
	// Failed: the task then counts as failed, not as cancelled.
	Failed bool `json:"failed,omitempty"`
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

func (e Configured) when() units.Instant         { return e.At }
func (e GPUsFound) when() units.Instant          { return e.At }
func (e EngineChanged) when() units.Instant      { return e.At }
func (e TaskSubmitted) when() units.Instant      { return e.At }
func (e Estimated) when() units.Instant          { return e.At }
func (e Sampled) when() units.Instant            { return e.At }
func (e ThroughputReported) when() units.Instant { return e.At }
func (e Started) when() units.Instant            { return e.At }
func (e Exited) when() units.Instant             { return e.At }
func (e Cancel) when() units.Instant             { return e.At }
func (e Removed) when() units.Instant            { return e.At }
func (e TimerFired) when() units.Instant         { return e.At }

func (Configured) about() TaskID         { return 0 }
func (GPUsFound) about() TaskID          { return 0 }
func (EngineChanged) about() TaskID      { return 0 }
func (e TaskSubmitted) about() TaskID    { return e.ID }
func (e Estimated) about() TaskID        { return e.Task }
func (Sampled) about() TaskID            { return 0 }
func (ThroughputReported) about() TaskID { return 0 }
func (e Started) about() TaskID          { return e.Task }
func (e Exited) about() TaskID           { return e.Task }
func (e Cancel) about() TaskID           { return e.Task }
func (Removed) about() TaskID            { return 0 } // its records go
func (TimerFired) about() TaskID         { return 0 }

func (Configured) kind() string         { return "configured" }
func (GPUsFound) kind() string          { return "gpus-found" }
func (EngineChanged) kind() string      { return "engine-changed" }
func (TaskSubmitted) kind() string      { return "task-submitted" }
func (Estimated) kind() string          { return "estimated" }
func (Sampled) kind() string            { return "sampled" }
func (ThroughputReported) kind() string { return "paced" }
func (Started) kind() string            { return "started" }
func (Exited) kind() string             { return "exited" }
func (Cancel) kind() string             { return "cancel" }
func (Removed) kind() string            { return "removed" }
func (TimerFired) kind() string         { return "woke" }

// About returns the task whose record an event may change without a decision, or 0.
func About(ev Event) TaskID { return ev.about() }

// EventTime returns the instant an event carries.
func EventTime(ev Event) units.Instant { return ev.when() }

// EncodeEvent returns an event's kind and its JSON form for a journal.
func EncodeEvent(ev Event) (kind string, body []byte, err error) {
	body, err = json.Marshal(ev)
	return ev.kind(), body, err
}

// DecodeEvent is the inverse of EncodeEvent.
func DecodeEvent(kind string, body []byte) (Event, error) {
	decode, ok := eventDecoders[kind]
	if !ok {
		return nil, fmt.Errorf("unknown event kind %q", kind)
	}
	ev, err := decode(body)
	if err != nil {
		return nil, fmt.Errorf("event %s: %w", kind, err)
	}
	return ev, nil
}

var eventDecoders = map[string]func([]byte) (Event, error){
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
