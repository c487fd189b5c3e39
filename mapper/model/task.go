package model

import (
	"slices"
	"strconv"
	"time"

	"carma/internal/units"
	"carma/mapper/interference"
)

// TaskID numbers the tasks of one daemon, from 1, in order of submission.
type TaskID int64

func (id TaskID) String() string { return strconv.FormatInt(int64(id), 10) }

// Phase is the state of a task.
type Phase string

// The phases, in the order in which a task has them.
const (
	Estimating Phase = "estimating" // submitted; its memory is not estimated yet
	Held       Phase = "held"       // in no queue yet: it waits for dependencies, its delay or its group
	Queued     Phase = "queued"     // in the main queue
	Recovering Phase = "recovering" // in the recovery queue, after a GPU OOM or an infrastructure failure
	Launching  Phase = "launching"  // its memory is allocated, its container is being created
	Running    Phase = "running"
	Stopping   Phase = "stopping" // asked to stop, its container has not ended yet
	Suspending Phase = "suspending"
	Suspended  Phase = "suspended" // its container is frozen and has nothing on GPUs
	Resuming   Phase = "resuming"

	Succeeded Phase = "succeeded"
	Failed    Phase = "failed"
	Cancelled Phase = "cancelled"
)

// Phases lists all phases.
var Phases = []Phase{Estimating, Held, Queued, Recovering, Launching, Running, Suspending, Suspended, Resuming, Stopping, Succeeded, Failed, Cancelled}

// Waits reports whether a task in this phase is in a queue or may enter one.
func (p Phase) Waits() bool { return !p.Finished() && !p.Placed() }

// Finished reports whether the phase is final.
func (p Phase) Finished() bool { return p == Succeeded || p == Failed || p == Cancelled }

// Placed reports whether a task in this phase has GPUs.
func (p Phase) Placed() bool {
	return p == Launching || p == Running || p == Stopping || p == Suspending || p == Resuming
}

// The methods that the history looks at.
const (
	Declared    Method = "declared" // the user gave it, and may know of later growth
	FromHistory Method = "history"  // earlier runs of the task's kind gave it
)

// Task is a task as the mapper knows it: the request, the estimate and its history.
type Task struct {
	Request
	Phase     Phase         `json:"phase"`
	Submitted units.Instant `json:"submitted"`
	Estimate  Estimate      `json:"estimate"`
	Expected  Expected      `json:"expected"`
	// NextGrant is the memory that the next launch is granted on each GPU: the estimate
	// at first, more after a GPU OOM.
	NextGrant units.Bytes `json:"need"`
	// NextHostGrant is the host memory for the next launch if it is known without a
	// request, or 0 for the part that goes with its GPUs.
	NextHostGrant units.Bytes `json:"host_need,omitempty"`
	// NextExclusive: the next launch gets exclusive GPUs.
	NextExclusive bool `json:"alone,omitempty"`
	// Learner: its memory is not known. A launch grants it all free memory of its GPUs,
	// which must be at least NextGrant.
	Learner bool `json:"learner,omitempty"`
	// Doubt is the standard deviation of the SM activity in Expected, or 0 if the
	// activity is as good as known.
	Doubt float64 `json:"doubt,omitempty"`
	// Pace is the speed of the current attempt according to its output.
	Pace ThroughputState `json:"pace,omitzero"`
	// Evictions counts how often it was stopped for slowing others down too much; Moving:
	// it is being stopped for that.
	Evictions int  `json:"moves,omitempty"`
	Moving    bool `json:"moving,omitempty"`
	// Hold is the hold that keeps it from being launched, or nil. Back is the queue in which it
	// was before it was held, or empty.
	Hold *Hold `json:"hold,omitempty"`
	Back Phase `json:"back,omitempty"`
	// Suspension is set while it is suspending, suspended or resuming.
	Suspension *Suspension `json:"suspension,omitempty"`
	// Recall is set while it is stopping to go back to the queue.
	Recall *PendingRequeue `json:"recall,omitempty"`
	// Pinned are the GPUs on which it may run, or empty for any.
	Pinned []GPUID `json:"pinned,omitempty"`
	// Seat is its position in its line, if its user has moved one of their tasks.
	Seat *QueuePosition `json:"seat,omitempty"`
	// Idle is its idle state while it runs.
	Idle Idleness `json:"idle,omitzero"`
	// Waits are its unmet dependencies. Due is the end of its delay, or 0 if it is over.
	Waits []Dependency  `json:"waits,omitempty"`
	Due   units.Instant `json:"due,omitempty"`
	// QueuedAt is the instant at which it last entered a queue.
	QueuedAt units.Instant `json:"queued_at,omitempty"`
	// NotBefore delays the next launch (back-off after an infrastructure failure).
	NotBefore units.Instant `json:"not_before,omitempty"`
	// BlockedAt is the instant at which it became the first task that does not fit, which
	// starts its aging, or 0.
	BlockedAt units.Instant `json:"blocked_at,omitempty"`
	// Unfilled: a task that backfilled for it could not be suspended, so no other may.
	Unfilled bool `json:"unfilled,omitempty"`
	// WayAt is the instant of the last preemption for it, or 0.
	WayAt units.Instant `json:"way_at,omitempty"`
	// Behind is the highest task number when it last went to the back of its queue, after
	// its slot, or 0 if it never did.
	Behind TaskID `json:"behind,omitempty"`
	// Rank is its rank in its lane: a lower rank is launched first, and among equal ranks a lower
	// number.
	Rank units.Instant `json:"rank,omitempty"`
	// Done is the work that the current attempt is predicted to have done up to PacedAt,
	// in seconds alone. Speed is its predicted speed; alone it is 1.
	Done    float64       `json:"done,omitempty"`
	Speed   float64       `json:"speed,omitempty"`
	PacedAt units.Instant `json:"paced_at,omitempty"`
	// Seen is its observed activity on each of its GPUs in the last attempt, if it was
	// alone there for a while.
	Seen []interference.Load `json:"seen,omitempty"`
	// Avoid are the GPUs on which its infrastructure failed; they are used last.
	Avoid    []GPUID   `json:"avoid,omitempty"`
	Attempts []Attempt `json:"attempts,omitempty"`
	// OOMs counts its own GPU OOMs, HostOOMs its host OOMs, Failures its program
	// failures, NotAtFault the ends that it did not cause.
	OOMs       int `json:"ooms,omitempty"`
	HostOOMs   int `json:"host_ooms,omitempty"`
	Failures   int `json:"failures,omitempty"`
	NotAtFault int `json:"blameless,omitempty"`
	// Suspected: an attempt ended with a suspected GPU OOM, and it got more memory for
	// that. ConfirmedOOM: two sources reported one of its GPU OOMs.
	Suspected    bool `json:"suspected,omitempty"`
	ConfirmedOOM bool `json:"confirmed_oom,omitempty"`
	// StartFailures counts consecutive launches that failed because of the engine or a
	// GPU. StartFailuresWhileOthersStart counts how often another task could start
	// meanwhile.
	StartFailures                 int `json:"unstarted,omitempty"`
	StartFailuresWhileOthersStart int `json:"strikes,omitempty"`
	// From is its place in the queues before its last launch.
	From QueuePlace `json:"from,omitzero"`
	// StopReason is set when it was asked to stop.
	StopReason Reason `json:"stop_reason,omitzero"`
	// TimedOut: it fails when it stops, for its time limit, for idling, or see [Cancel].
	TimedOut bool `json:"timed_out,omitempty"`
	// Overuse: carma stops it because it used memory granted to others.
	Overuse bool `json:"overuse,omitempty"`
	// SlotUsed: carma stops it so that others get their turn.
	SlotUsed bool `json:"slot_used,omitempty"`
	// Reason is the reason why it returned to a queue, or for its end.
	Reason Reason `json:"reason,omitzero"`
	// Ended and Code are set when the phase is final.
	Ended units.Instant `json:"ended,omitempty"`
	Code  int           `json:"code,omitempty"`

	index int // see Index
}

// Index returns the number of a task among the unfinished tasks, from 1. It is 0 for a copy and
// for a finished task. A later task can get the number of a finished one.
func (t *Task) Index() int { return t.index }

// SetIndex sets the number of a task among the unfinished tasks.
func (t *Task) SetIndex(i int) { t.index = i }

// Current returns the attempt that has GPUs now, or nil.
func (t *Task) Current() *Attempt {
	if t.Phase.Placed() && len(t.Attempts) > 0 {
		return &t.Attempts[len(t.Attempts)-1]
	}
	return nil
}

// Alive returns the attempt that has a container, or is about to have one, or nil. The
// attempt of a suspended task has no GPUs.
func (t *Task) Alive() *Attempt {
	if t.Phase == Suspended {
		return t.Last()
	}
	return t.Current()
}

// Waiting reports whether a task is in a queue.
func (t *Task) Waiting() bool {
	return t.Phase == Queued || t.Phase == Recovering || t.Phase == Suspended && t.Suspension.Automatic && t.Hold == nil && t.StopReason.Code == ""
}

// GoesFirst reports whether a waiting task is launched before the tasks of the main queue.
func (t *Task) GoesFirst() bool {
	return t.Phase == Recovering || t.Phase == Suspended && !t.Suspension.Reason.isTimeSlice()
}

// Last returns the latest attempt, or nil.
func (t *Task) Last() *Attempt {
	if len(t.Attempts) == 0 {
		return nil
	}
	return &t.Attempts[len(t.Attempts)-1]
}

// Clone returns a deep copy with index 0.
func (t *Task) Clone() *Task {
	c := *t
	c.index = 0
	if t.Suspension != nil {
		suspension := *t.Suspension
		suspension.From = append([]Grant(nil), suspension.From...)
		c.Suspension = &suspension
	}
	c.Pinned = append([]GPUID(nil), t.Pinned...)
	c.Avoid = append([]GPUID(nil), t.Avoid...)
	c.Attempts = append([]Attempt(nil), t.Attempts...)
	for i := range c.Attempts {
		c.Attempts[i].Grants = append([]Grant(nil), c.Attempts[i].Grants...)
	}
	return &c
}

// MayUse reports whether a task may run on a GPU: it is not pinned, or pinned to it.
func (t *Task) MayUse(id GPUID) bool { return len(t.Pinned) == 0 || slices.Contains(t.Pinned, id) }

// SetExpectedLoad sets the activity that is expected of a task on one of its GPUs, also for later
// attempts.
func (t *Task) SetExpectedLoad(g *GPU, load interference.Load) {
	all := make([]interference.Load, t.GPUs)
	for i, grant := range t.Current().Grants {
		if all[i] = t.LoadOn(i); grant.GPU == g.ID {
			all[i] = load
		}
	}
	t.Expected.Loads = all
}

// StepTime returns the time of a training step alone, in seconds, from the task's output,
// or 0 if not known.
func (t *Task) StepTime() float64 {
	if t.Pace.Steps && t.Pace.Alone > 0 {
		return 1 / t.Pace.Alone
	}
	return 0
}

// Backfilling reports whether a placed task backfills a GPU and can be suspended.
func (t *Task) Backfilling() bool {
	return t.Last().Fills != 0 && !t.Last().Stays && t.Phase != Stopping
}

// MergeStartFailures keeps only the last one of consecutive failed starts.
func (t *Task) MergeStartFailures() {
	n := len(t.Attempts)
	if n < 2 || t.Attempts[n-2].Fault == nil || t.Attempts[n-2].Started != 0 {
		return
	}
	last := t.Attempts[n-1]
	last.Starts = last.NumStarts() + t.Attempts[n-2].NumStarts()
	t.Attempts = append(t.Attempts[:n-2:n-2], last)
}

// IsDeclared reports whether the activity of a task was declared before the run and not
// measured, in this run or an earlier one.
func (t *Task) IsDeclared() bool {
	return len(t.Expected.Loads) > 0 && t.Expected.Source != SourceSeen && t.Expected.Source != SourceHistory
}

// Ready reports whether a task has no unmet dependency, no delay left and no hold.
func (t *Task) Ready() bool { return len(t.Waits) == 0 && t.Due == 0 && t.Hold == nil }

// HasStarted reports whether a container of a task has run.
func (t *Task) HasStarted() bool {
	return slices.ContainsFunc(t.Attempts, func(a Attempt) bool { return a.Started > 0 })
}

// NeedOn returns the memory that a task is granted on a GPU: its next grant, and at least
// the share that it takes there by design.
func (t *Task) NeedOn(g *GPU) units.Bytes {
	share := units.Bytes(min(max(t.Estimate.Share, 0), WholeGPU))
	return max(t.NextGrant, g.Capacity/WholeGPU*share+g.Capacity%WholeGPU*share/WholeGPU)
}

// Active reports whether a task counts for the limit of its group. A task that will run
// again keeps counting.
func (p Phase) Active() bool { return p == Queued || p == Recovering || p == Suspended || p.Placed() }

// Hold records who held a task, since when, and why.
type Hold struct {
	Since units.Instant `json:"since"`
	By    string        `json:"by,omitempty"`
	Why   string        `json:"why,omitempty"`
}

// HeldWhileSuspended reports whether a hold keeps a task from resuming, or did so when it
// was asked to stop.
func (t *Task) HeldWhileSuspended() bool {
	return t.Hold != nil && t.Suspension != nil && t.Phase != Resuming
}

// OverranHost reports whether [State.hostOverrun] handles the end of an attempt: a task
// that requested an amount fails instead.
func (t *Task) OverranHost(a *Attempt, class Class) bool {
	return class == ExitHostOOM && t.HostMem == 0 && a.Host.Memory > 0
}

// Idleness is the idle state of a running task.
type Idleness struct {
	// Since is the instant since which all its GPUs have been idle for it and nobody has
	// typed into its terminal, or 0 if it is busy or that is not known.
	Since units.Instant `json:"since,omitempty"`
	// Touched is the instant of the last input.
	Touched units.Instant `json:"touched,omitempty"`
	// Told: it has been reported. Ends is the instant at which it will be stopped, or 0
	// if it has not been warned.
	Told bool          `json:"told,omitempty"`
	Ends units.Instant `json:"ends,omitempty"`
	// Unused: it has never had memory on its GPUs.
	Unused bool `json:"unused,omitempty"`
}

// QueuePlace is the place of a task in the queues before its launch.
type QueuePlace struct {
	Phase     Phase         `json:"phase"`
	QueuedAt  units.Instant `json:"queued_at,omitempty"`
	BlockedAt units.Instant `json:"blocked_at,omitempty"`
}

// LoadOn returns the expected activity of a task on its i-th GPU.
func (t *Task) LoadOn(i int) interference.Load {
	if n := len(t.Expected.Loads); n > 0 {
		return t.Expected.Loads[min(i, n-1)]
	}
	return UnknownLoad
}

// QueuePosition is a position in a line. A task has its own, or another's after its user
// has moved one of their tasks.
type QueuePosition struct {
	Rank units.Instant `json:"rank,omitempty"`
	// ID is the number of the task to which the position originally belongs.
	ID       TaskID        `json:"id"`
	Behind   TaskID        `json:"behind,omitempty"`
	QueuedAt units.Instant `json:"queued_at,omitempty"`
	// Turn orders tasks with the same position: a task that ran meanwhile is back in its
	// own position, which another task has got.
	Turn int `json:"turn,omitempty"`
}

// Position returns the task's position in its line.
func (t *Task) Position() QueuePosition {
	if t.Seat != nil {
		return *t.Seat
	}
	return QueuePosition{t.Rank, t.ID, t.Behind, t.QueuedAt, 0}
}

// PendingRequeue is stored in a stopping task that will be requeued.
type PendingRequeue struct {
	Hold bool   `json:"hold,omitempty"`
	By   string `json:"by,omitempty"`
	Why  string `json:"why,omitempty"`
}

// Reservation is a reservation of GPUs for a user or an account. Tasks that run when it
// begins continue. No task of anybody else is started if it would run into the
// reservation.
type Reservation struct {
	ID   int     `json:"id"`
	GPUs []GPUID `json:"gpus"`
	// Memory is the memory reserved on each of the GPUs, or 0 for the whole GPU.
	Memory units.Bytes `json:"memory,omitempty"`
	// User or Account is the beneficiary. The other is empty.
	User    string        `json:"user,omitempty"`
	Account string        `json:"account,omitempty"`
	From    units.Instant `json:"from"`
	Until   units.Instant `json:"until"`
	By      string        `json:"by,omitempty"`
	Why     string        `json:"why,omitempty"`
}

// IsFor reports whether a reservation is for a task.
func (r *Reservation) IsFor(t *Task) bool {
	return r.User != "" && r.User == t.User || r.Account != "" && r.Account == t.Account
}

// Resizable reports whether a launching or running task can be resized. A stopping task
// needs no new allocation, and the allocation of a suspended one includes its GPU memory.
func (t *Task) Resizable() bool {
	return t.StopReason.Code == "" && (t.Phase == Launching || t.Phase == Running)
}

// ClearReason clears a reason that no longer applies.
func (t *Task) ClearReason(code ReasonCode) {
	if t.Reason.Code == code {
		t.Reason = Reason{}
	}
}

// DoneBy returns the work that the current attempt has done by an instant, in seconds
// alone. A suspending or resuming task does no work.
func (t *Task) DoneBy(at units.Instant) float64 {
	a := t.Current()
	if a == nil || a.Started == 0 || t.Phase == Resuming || t.Phase == Suspending {
		return t.Done
	}
	return max(0, t.Done+at.Sub(max(t.PacedAt, a.Started)).Seconds()*t.Speed)
}

// LentMemory returns the host memory that a task lends now.
func (t *Task) LentMemory() units.Bytes {
	if t.Suspension == nil {
		return 0
	}
	return t.Suspension.Lent
}

// SuspendedMemory returns the host memory allocated for the GPU memory of a suspended
// task.
func (t *Task) SuspendedMemory() units.Bytes {
	if t.Suspension == nil {
		return 0
	}
	return t.Suspension.Host
}

// SuspendedBy returns the time for which the last attempt has been suspended until an
// instant, which is not before its last suspension.
func (t *Task) SuspendedBy(at units.Instant) time.Duration {
	suspended := t.Last().SuspendedTime
	if t.Suspension != nil && t.Suspension.Since > 0 {
		suspended += at.Sub(t.Suspension.Since)
	}
	return suspended
}

// SetStopFlags records what happens to the task once it has stopped for a reason.
func (t *Task) SetStopFlags(code ReasonCode) {
	switch code {
	case ReasonTimeLimit, ReasonIdle:
		t.TimedOut = true
	case ReasonSlotUsed:
		t.SlotUsed = true
	case ReasonOveruse, ReasonHostOveruse:
		t.Overuse = true
	case ReasonSlowing:
		t.Moving = true
	case ReasonRecalled, ReasonMoved:
		t.Recall = &PendingRequeue{}
	}
}

// ThroughputState is the speed of a task's current attempt according to its output.
type ThroughputState struct {
	// Alone is its rate alone on its GPUs, measured or predicted, in its own unit per
	// second; Error is its relative standard deviation.
	Alone float64 `json:"alone,omitempty"`
	Error float64 `json:"error,omitempty"`
	// Measured: Alone was measured. Otherwise it follows from a prediction.
	Measured bool `json:"measured,omitempty"`
	// Unit names the unit of the rates. Rates of different units are not comparable.
	Unit string `json:"unit,omitempty"`
	// Steps: the unit is training steps.
	Steps bool `json:"steps,omitempty"`
	// Rate is the latest rate, measured from Since to At. Share is the part of the work
	// done at At, or 0 if not known.
	Rate      float64 `json:"rate,omitempty"`
	RateError float64 `json:"rate_error,omitempty"`
	Share     float64 `json:"share,omitempty"`
	// Whole is the run time alone of the attempt, from that share, or 0 if not known.
	Whole time.Duration `json:"whole,omitempty"`
	Since units.Instant `json:"since,omitempty"`
	At    units.Instant `json:"at,omitempty"`
}

// Avoids reports whether a task uses a GPU only if no other takes it.
func (t *Task) Avoids(g *GPU) bool { return slices.Contains(t.Avoid, g.ID) }

// UserAccount is a user on an account.
type UserAccount struct{ User, Account string }

// UserAccount returns the task's user and account.
func (t *Task) UserAccount() UserAccount { return UserAccount{t.User, t.Account} }

// VacatesFor reports whether a running task is asked to vacate its GPUs, instead of being
// suspended by the driver.
func (t *Task) VacatesFor(why Reason) bool { return t.Last().Leaves && !why.moves() }

// ResumesInPlace reports whether a suspended task can resume only on the GPUs that it
// had.
func (t *Task) ResumesInPlace() bool { return t.Phase == Suspended && t.Suspension.InPlace }
