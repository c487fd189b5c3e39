package mapper

import (
	"strconv"
	"time"

	"carma/internal/units"

	"carma/mapper/interference"
)

// TaskID numbers the tasks of one daemon, from 1, in order of submission.
type TaskID int64

func (id TaskID) String() string { return strconv.FormatInt(int64(id), 10) }

// Priority is a task's class. Higher classes are scheduled first.
type Priority int

// The priority classes.
const (
	Low    Priority = -1
	Normal Priority = 0
	High   Priority = 1
)

func (p Priority) String() string {
	switch {
	case p < Normal:
		return "low"
	case p > Normal:
		return "high"
	}
	return "normal"
}

// Phase is the state of a task.
type Phase string

// The phases, in the order a task goes through them.
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

// Request is the part of a submission that scheduling needs.
type Request struct {
	ID   TaskID `json:"id"`
	User string `json:"user,omitempty"`
	// Account is the group of users to which its use is charged, beside its user.
	Account string `json:"account,omitempty"`
	// Namespace is the namespace of its pods, which may be full, or empty if it has none.
	Namespace string `json:"namespace,omitempty"`
	// Kind is equal for tasks that do the same work, as far as is known: a digest of
	// image and command. Family is wider: the model. Each is empty if unknown.
	Kind   string `json:"kind,omitempty"`
	Family string `json:"family,omitempty"`
	// Program is equal for tasks that differ at most in Batch, their batch size. They are
	// empty and 0 if unknown.
	Program string `json:"program,omitempty"`
	Batch   int    `json:"batch,omitempty"`
	// Image is equal for tasks with the same image, or empty if unknown.
	Image    string   `json:"image,omitempty"`
	GPUs     int      `json:"gpus"` // number of distinct GPUs, at least 1 unless NoGPU
	Priority Priority `json:"priority,omitempty"`
	// NoGPU: it uses no GPU, only its machine's memory and processors.
	NoGPU bool `json:"no_gpu,omitempty"`
	// HostMem is the most host memory that it may use, HostReserve the host memory to
	// allocate, CPUs the thousandths of a processor to allocate. 0 means no request;
	// without HostReserve, HostMem is allocated.
	HostMem     units.Bytes `json:"host_mem,omitempty"`
	HostReserve units.Bytes `json:"host_reserve,omitempty"`
	CPUs        int64       `json:"cpus,omitempty"`
	// Exclusive: no other task may share its GPUs.
	Exclusive bool `json:"exclusive,omitempty"`
	// Retries is the number of times that the task runs again after a program failure.
	Retries int `json:"retries,omitempty"`
	// TimeLimit ends an attempt that runs longer; 0 is no limit.
	TimeLimit time.Duration `json:"time_limit,omitempty"`
	// Slot is the time for which an attempt may run while others wait for its GPUs, or 0
	// for the time in the options.
	Slot time.Duration `json:"slot,omitempty"`
	// Terminal: people work in it. IdleStop is the idle time after which it is stopped; 0
	// uses the options, and a negative value means never.
	Terminal bool          `json:"terminal,omitempty"`
	IdleStop time.Duration `json:"idle_stop,omitempty"`
	// After lists the earlier tasks that must meet a condition before it is queued.
	After []Dependency `json:"after,omitempty"`
	// Delay is the time from its submission until it may be queued.
	Delay time.Duration `json:"delay,omitempty"`
	// Group is the name of tasks that share a limit: it is queued while fewer than
	// Parallel of them are queued or placed. If Parallel is 0, it has no limit.
	Group    string `json:"group,omitempty"`
	Parallel int    `json:"parallel,omitempty"`
}

// Estimate is the predicted GPU memory of a task, on each of its GPUs.
type Estimate struct {
	// Memory is the upper bound that is allocated, or 0 with WholeGPU.
	Memory units.Bytes `json:"memory"`
	// Point is the likeliest figure where Memory is an upper bound, or 0 if unknown. If
	// only the upper bound is above every GPU, the task gets exclusive GPUs.
	Point units.Bytes `json:"point,omitempty"`
	// WholeGPU: nothing is known, so the task gets exclusive GPUs.
	WholeGPU bool `json:"whole_gpu,omitempty"`
	// Large, with WholeGPU: it needs, or may need, more than a shared GPU can give.
	// Without Large nothing is known, and its memory may be learned.
	Large bool `json:"large,omitempty"`
	// Method is the source of the number.
	Method Method `json:"method,omitempty"`
	// Share is the part of a GPU's whole memory that the task takes there by design, in
	// millionths, up to a whole GPU, or 0 if none. Memory is then the memory on the
	// smallest GPU.
	Share int64 `json:"share,omitempty"`
	// Plain is the uncorrected estimate; a run of the task measures its error.
	Plain RawEstimate `json:"plain,omitzero"`
}

// Method is the source of an estimate. The mapper knows only the two below; estimators
// have more, for people. Their names are in journals and must not change.
type Method string

// The methods that the history looks at.
const (
	Declared    Method = "declared" // the user gave it, and may know of later growth
	FromHistory Method = "history"  // earlier runs of the task's kind gave it
)

// Grant is the memory allocated to a task on one GPU.
type Grant struct {
	GPU    GPUID       `json:"gpu"`
	Memory units.Bytes `json:"memory"`
}

// Class says how an attempt ended, as far as it matters for recovery.
type Class string

// The classes. What recovery does with each is in recovery.go.
const (
	ExitOK             Class = "ok"
	ExitProgram        Class = "program"           // the program's own fault
	ExitGPUOOM         Class = "gpu-oom"           // a GPU memory allocation failed
	ExitSuspectedOOM   Class = "suspected-gpu-oom" // an allocation failed, perhaps one of GPU memory
	ExitHostOOM        Class = "host-oom"          // the kernel killed it for host memory
	ExitInfrastructure Class = "infrastructure"    // the engine, driver or MPS failed
	ExitEvicted        Class = "evicted"           // MPS took its memory back
	ExitMPSFault       Class = "mps-fault"         // the MPS server failed
	ExitCannotStart    Class = "cannot-start"      // the container can never run as requested
	ExitStopped        Class = "stopped"           // carma stopped it
)

// Attempt is one run of a task on its GPUs.
type Attempt struct {
	N        int           `json:"n"` // from 1
	Grants   []Grant       `json:"grants"`
	Launched units.Instant `json:"launched"`          // when memory was allocated
	Started  units.Instant `json:"started,omitempty"` // when the container began to run, or 0 if never
	Ended    units.Instant `json:"ended,omitempty"`
	// SuspendedTime is the total time of its suspensions. Back is the instant of its last
	// resumption, or 0 if none. Turn is the begin of its slot less SuspendedTime then, or
	// 0 for its start.
	SuspendedTime time.Duration `json:"away,omitempty"`
	Back          units.Instant `json:"back,omitempty"`
	Turn          units.Instant `json:"turn,omitempty"`
	// Absences are its last suspensions, without the present one.
	Absences []SuspensionSpan `json:"absences,omitempty"`
	// Stays: it could not be suspended, and carma does not try again on its own.
	Stays bool `json:"stays,omitempty"`
	// Fills is the task for which its GPU was reserved when it was placed there, until
	// that one has all its GPUs, or 0.
	Fills TaskID `json:"fills,omitempty"`
	// Leaves: its program vacates its GPUs on request, see [VacatesOnRequest].
	Leaves bool  `json:"leaves,omitempty"`
	Class  Class `json:"class,omitempty"` // empty while it runs
	Code   int   `json:"code,omitempty"`
	// Peak is the highest observed memory on one of its GPUs.
	Peak units.Bytes `json:"peak,omitempty"`
	// Filled: it took most of a card at its start, needed or not.
	Filled bool `json:"filled,omitempty"`
	// Host is the allocation on its machine, HostPeak the highest observed host memory.
	Host     HostShare   `json:"host,omitzero"`
	HostPeak units.Bytes `json:"host_peak,omitempty"`
	// Devices says that it can no longer open the devices of its GPUs; otherwise nil.
	Devices *DeviceLoss `json:"devices,omitempty"`
	// Resized: Host was changed while it ran, see [Resize].
	Resized bool `json:"resized,omitempty"`
	// Message is the worker's text about its end, for people. Reason says why the task
	// returned to a queue after it.
	Message string `json:"message,omitempty"`
	Reason  Reason `json:"reason,omitzero"`
	// NotAtFault: another task caused its end, and it costs no retry.
	NotAtFault bool `json:"blameless,omitempty"`
	// Fault kept it from starting, through no fault of the task. Starts is the number of
	// consecutive failed launches that this entry stands for, or 0 for one; N is the
	// number of the last one.
	Fault  *Fault `json:"fault,omitempty"`
	Starts int    `json:"starts,omitempty"`
}

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
	Pace throughputState `json:"pace,omitzero"`
	// Evictions counts how often it was stopped for slowing others down too much; Moving:
	// it is being stopped for that.
	Evictions int  `json:"moves,omitempty"`
	Moving    bool `json:"moving,omitempty"`
	// Hold says who keeps it from being launched, or is nil. Back is the queue in which
	// it was before it was held, or empty.
	Hold *Hold `json:"hold,omitempty"`
	Back Phase `json:"back,omitempty"`
	// Suspension is set while it is suspending, suspended or resuming.
	Suspension *Suspension `json:"suspension,omitempty"`
	// Recall is set while it is stopping to go back to the queue.
	Recall *PendingRequeue `json:"recall,omitempty"`
	// Pinned are the GPUs on which it may run, or empty for any.
	Pinned []GPUID `json:"pinned,omitempty"`
	// Seat is its position in its line, if its user has moved one of their tasks.
	Seat *queuePosition `json:"seat,omitempty"`
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
	// Rank is its rank in its lane: lower goes first, then lower numbers.
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
	From place `json:"from,omitzero"`
	// StopReason is set when it was asked to stop.
	StopReason Reason `json:"stop_reason,omitzero"`
	// TimedOut: it fails when it stops, for its time limit, for idling, or see [Cancel].
	TimedOut bool `json:"timed_out,omitempty"`
	// Overuse: carma stops it because it used memory granted to others.
	Overuse bool `json:"overuse,omitempty"`
	// SlotUsed: carma stops it so that others get their turn.
	SlotUsed bool `json:"slot_used,omitempty"`
	// Reason says why it returned to a queue, or why it ended as it did.
	Reason Reason `json:"reason,omitzero"`
	// Ended and Code are set when the phase is final.
	Ended units.Instant `json:"ended,omitempty"`
	Code  int           `json:"code,omitempty"`

	links kindLinks
	index int // among the unfinished tasks, from 1, see perTask; 0 for a copy
}

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

// waiting reports whether a task is in a queue.
func (t *Task) waiting() bool {
	return t.Phase == Queued || t.Phase == Recovering || t.Phase == Suspended && t.Suspension.Automatic && t.Hold == nil && t.StopReason.Code == ""
}

// first reports whether a waiting task goes before the tasks of the main queue.
func (t *Task) first() bool {
	return t.Phase == Recovering || t.Phase == Suspended && !t.Suspension.Reason.isTimeSlice()
}

// Last returns the latest attempt, or nil.
func (t *Task) Last() *Attempt {
	if len(t.Attempts) == 0 {
		return nil
	}
	return &t.Attempts[len(t.Attempts)-1]
}

func (t *Task) clone() *Task {
	c := *t
	c.links, c.index = kindLinks{}, 0
	if t.Suspension != nil {
		away := *t.Suspension
		away.From = append([]Grant(nil), away.From...)
		c.Suspension = &away
	}
	c.Pinned = append([]GPUID(nil), t.Pinned...)
	c.Avoid = append([]GPUID(nil), t.Avoid...)
	c.Attempts = append([]Attempt(nil), t.Attempts...)
	for i := range c.Attempts {
		c.Attempts[i].Grants = append([]Grant(nil), c.Attempts[i].Grants...)
	}
	return &c
}
