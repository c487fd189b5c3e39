package model

import (
	"time"

	"carma/internal/units"
)

// OrphanAdopted says that the engine runs an attempt that the journal has lost. It adds
// the task if it is not known. A waiting task, or one whose older attempt is thought to
// run, continues with this attempt. The memory is allocated on the attempt's GPUs even if
// it exceeds what is free there. An attempt that is known changes nothing. An unknown
// task number may be lower than the last one, because tasks were submitted before the
// container was found.
type OrphanAdopted struct {
	At units.Instant `json:"at"`
	Request
	Attempt  int           `json:"attempt"`
	Grants   []Grant       `json:"grants"`
	Host     HostShare     `json:"host,omitzero"`
	Launched units.Instant `json:"launched,omitempty"` // 0 if not known
}

func (e OrphanAdopted) When() units.Instant { return e.At }

func (OrphanAdopted) Kind() string { return "taken-in" }

func (e OrphanAdopted) about() TaskID { return e.ID }

// EndRecovered says that a task has ended according to its record, although the journal
// lost its end. Task is its final state.
type EndRecovered struct {
	At   units.Instant `json:"at"`
	Task Task          `json:"task"`
}

func (e EndRecovered) When() units.Instant { return e.At }

func (EndRecovered) Kind() string { return "settled" }

func (e EndRecovered) about() TaskID { return e.Task.ID }

// Pinned sets the GPUs on which a task may run, or any if GPUs is empty. A task that runs
// elsewhere is suspended and resumed there if option SuspendMoves is on and that is
// possible. Otherwise it is stopped as by [RequeueRequested] and restarts there. The
// event is ignored if it names fewer GPUs than the task needs.
type Pinned struct {
	At   units.Instant `json:"at"`
	Task TaskID        `json:"task"`
	GPUs []GPUID       `json:"gpus"`
	By   string        `json:"by,omitempty"`
}

func (e Pinned) When() units.Instant { return e.At }

func (Pinned) Kind() string { return "pinned" }

func (e Pinned) about() TaskID { return e.Task }

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
	// Again is set if the caller decides whether the task's program runs again. Failures of the
	// program are then requeued regardless of Retries, and the task is held before each further
	// attempt until it is released. Again is the reason why it waits.
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

func (e TaskSubmitted) When() units.Instant { return e.At }

func (e Estimated) When() units.Instant { return e.At }

func (e ThroughputReported) When() units.Instant { return e.At }

func (e Started) When() units.Instant { return e.At }

func (e Exited) When() units.Instant { return e.At }

func (e Cancel) When() units.Instant { return e.At }

func (e TaskSubmitted) about() TaskID { return e.ID }

func (e Estimated) about() TaskID { return e.Task }

func (ThroughputReported) about() TaskID { return 0 }

func (e Started) about() TaskID { return e.Task }

func (e Exited) about() TaskID { return e.Task }

func (e Cancel) about() TaskID { return e.Task }

func (TaskSubmitted) Kind() string { return "task-submitted" }

func (Estimated) Kind() string { return "estimated" }

func (ThroughputReported) Kind() string { return "paced" }

func (Started) Kind() string { return "started" }

func (Exited) Kind() string { return "exited" }

func (Cancel) Kind() string { return "cancel" }

// HoldChanged holds or releases a waiting task. A running task cannot be held;
// [RequeueRequested] must first take it off its GPUs. A held suspended task stays
// suspended until it is released, even if somebody asks to resume it.
type HoldChanged struct {
	At   units.Instant `json:"at"`
	Task TaskID        `json:"task"`
	// Hold holds the task; otherwise it is released.
	Hold bool   `json:"hold,omitempty"`
	By   string `json:"by,omitempty"`
	Why  string `json:"why,omitempty"`
}

func (e HoldChanged) When() units.Instant { return e.At }

func (HoldChanged) Kind() string { return "hold-changed" }

func (e HoldChanged) about() TaskID { return e.Task }

// TerminalInput says that somebody has typed into a task's terminal, or has run a command
// in the task.
type TerminalInput struct {
	At   units.Instant `json:"at"`
	Task TaskID        `json:"task"`
}

func (e TerminalInput) When() units.Instant { return e.At }

func (TerminalInput) Kind() string { return "touched" }

func (e TerminalInput) about() TaskID { return e.Task }

// QueueMoved moves a waiting task before or behind the other waiting tasks of its user
// with the same priority. They exchange their positions in the queue among themselves, so
// no task of another user waits longer or shorter because of it.
type QueueMoved struct {
	At   units.Instant `json:"at"`
	Task TaskID        `json:"task"`
	// Last moves it behind the others; otherwise it becomes the first.
	Last bool   `json:"last,omitempty"`
	By   string `json:"by,omitempty"`
}

func (e QueueMoved) When() units.Instant { return e.At }

func (QueueMoved) Kind() string { return "reordered" }

func (e QueueMoved) about() TaskID { return e.Task }

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

func (e RequeueRequested) When() units.Instant { return e.At }

func (RequeueRequested) Kind() string { return "recalled" }

func (e RequeueRequested) about() TaskID { return e.Task }

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
	// Failure is the reason why it continues to run, or empty if it is suspended.
	Failure string `json:"failure,omitempty"`
}

// Resumed answers [Resume]: the attempt runs again, or stays suspended.
type Resumed struct {
	At      units.Instant `json:"at"`
	Task    TaskID        `json:"task"`
	Attempt int           `json:"attempt"`
	// Failure is the reason why it stays suspended, or empty if it runs.
	Failure string `json:"failure,omitempty"`
}

func (e SuspendAsked) When() units.Instant { return e.At }

func (e ResumeAsked) When() units.Instant { return e.At }

func (e SuspendDone) When() units.Instant { return e.At }

func (e Resumed) When() units.Instant { return e.At }

func (SuspendAsked) Kind() string { return "suspend-asked" }

func (ResumeAsked) Kind() string { return "resume-asked" }

func (SuspendDone) Kind() string { return "suspended" }

func (Resumed) Kind() string { return "resumed" }

func (e SuspendAsked) about() TaskID { return e.Task }

func (e ResumeAsked) about() TaskID { return e.Task }

func (e SuspendDone) about() TaskID { return e.Task }

func (e Resumed) about() TaskID { return e.Task }

// TaskUpdated changes the request of a task that has not ended. A part that cannot be
// changed any more stays as it was; the caller checks with [State.Task] first.
type TaskUpdated struct {
	At     units.Instant `json:"at"`
	Task   TaskID        `json:"task"`
	By     string        `json:"by,omitempty"`
	Change TaskUpdate    `json:"change"`
}

func (e TaskUpdated) When() units.Instant { return e.At }

func (TaskUpdated) Kind() string { return "request-changed" }

func (e TaskUpdated) about() TaskID { return e.Task }

// TaskUpdate holds the new values; nil means unchanged.
type TaskUpdate struct {
	Priority  *Priority      `json:"priority,omitempty"`
	Retries   *int           `json:"retries,omitempty"`
	TimeLimit *time.Duration `json:"time_limit,omitempty"` // counts from the attempt's start
	Slot      *time.Duration `json:"slot,omitempty"`
	// Host applies to a task without a container, or to a running one: see [Resize].
	Host *HostAsk `json:"host,omitempty"`
	// The fields below apply to a task that is not placed and whose memory is estimated.
	GPUs      *int      `json:"gpus,omitempty"`
	Kind      *string   `json:"kind,omitempty"` // for this number of GPUs, as Program
	Program   *string   `json:"program,omitempty"`
	Exclusive *bool     `json:"exclusive,omitempty"`
	Estimate  *Estimate `json:"estimate,omitempty"`
	Expected  *Expected `json:"expected,omitempty"`
	// After replaces its dependencies on tasks submitted before it. It applies to a task
	// that has never been launched. A dependency on an unknown task counts as met.
	After *After `json:"after,omitempty"`
}

// HostAsk is a request for a machine's memory and processors, as in Request.
type HostAsk struct {
	Memory  units.Bytes `json:"memory,omitempty"`
	Reserve units.Bytes `json:"reserve,omitempty"`
	CPUs    int64       `json:"cpus,omitempty"`
}

// After lists dependencies; an empty list means none.
type After struct {
	Tasks []Dependency `json:"tasks,omitempty"`
}

// Normalize reports whether a change affects what a launch is granted.
func (c *TaskUpdate) Normalize() bool {
	return c.GPUs != nil || c.Kind != nil || c.Program != nil || c.Exclusive != nil || c.Estimate != nil || c.Expected != nil
}

// VacatesOnRequest says that the program of an attempt offers to vacate its GPUs on
// request, and to return to them (runner/suspend/leave). That works where the driver
// cannot suspend it: on several GPUs, and beside other MPS clients.
type VacatesOnRequest struct {
	At      units.Instant `json:"at"`
	Task    TaskID        `json:"task"`
	Attempt int           `json:"attempt"`
}

func (e VacatesOnRequest) When() units.Instant { return e.At }

func (VacatesOnRequest) Kind() string { return "leaves" }

func (e VacatesOnRequest) about() TaskID { return e.Task }
