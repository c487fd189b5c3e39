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

// Priority is a task's class. Higher classes are looked at first.
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

// Phase is where an unfinished or finished task is in its life.
type Phase string

// The phases, in the order a task goes through them.
const (
	Estimating Phase = "estimating" // submitted; its memory is not estimated yet
	Held       Phase = "held"       // in no queue yet: it waits for other tasks, its delay or its group
	Queued     Phase = "queued"     // in the main queue
	Recovering Phase = "recovering" // in the recovery queue, after a GPU OOM or an infrastructure failure
	Launching  Phase = "launching"  // its memory is booked, its container is being made
	Running    Phase = "running"
	Stopping   Phase = "stopping" // asked to stop, its container has not ended yet
	Suspending Phase = "suspending"
	Suspended  Phase = "suspended" // its container is frozen and has nothing on GPUs
	Resuming   Phase = "resuming"

	Succeeded Phase = "succeeded"
	Failed    Phase = "failed"
	Cancelled Phase = "cancelled"
)

// Phases are all of them.
var Phases = []Phase{Estimating, Held, Queued, Recovering, Launching, Running, Suspending, Suspended, Resuming, Stopping, Succeeded, Failed, Cancelled}

// Waits reports whether a task in this phase may be in a queue, or comes to be.
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
	// Account is whom its use is counted for, beside its user: a group of users.
	Account string `json:"account,omitempty"`
	// Namespace is the one of its pods, which may be full; empty: it has none.
	Namespace string `json:"namespace,omitempty"`
	// Kind is equal for tasks that do the same work, as far as can be told: a
	// digest of image and command. Family is wider: the model. Empty: unknown.
	Kind   string `json:"kind,omitempty"`
	Family string `json:"family,omitempty"`
	// Program is equal for tasks that differ at most in Batch, their batch size;
	// empty and 0: unknown.
	Program string `json:"program,omitempty"`
	Batch   int    `json:"batch,omitempty"`
	// Image is equal for tasks of one image; empty: unknown.
	Image    string   `json:"image,omitempty"`
	GPUs     int      `json:"gpus"` // number of distinct GPUs, at least 1, but for NoGPU
	Priority Priority `json:"priority,omitempty"`
	// NoGPU: it gets none; it has its machine's memory and processors alone.
	NoGPU bool `json:"no_gpu,omitempty"`
	// HostMem is the most host memory that it may use, HostReserve what is booked for
	// it, CPUs the thousandths of a processor that are booked. 0: it asked for none;
	// without HostReserve, HostMem is booked.
	HostMem     units.Bytes `json:"host_mem,omitempty"`
	HostReserve units.Bytes `json:"host_reserve,omitempty"`
	CPUs        int64       `json:"cpus,omitempty"`
	// Exclusive: no other task may share its GPUs.
	Exclusive bool `json:"exclusive,omitempty"`
	// Retries is how often a program failure is run again.
	Retries int `json:"retries,omitempty"`
	// TimeLimit ends an attempt that runs longer; 0 is no limit.
	TimeLimit time.Duration `json:"time_limit,omitempty"`
	// Slot is how long an attempt may run while others wait for its GPUs; 0:
	// as long as the option says.
	Slot time.Duration `json:"slot,omitempty"`
	// Terminal: people work in it. IdleStop is the idle time after which it is
	// stopped; 0: as the options say, negative: never.
	Terminal bool          `json:"terminal,omitempty"`
	IdleStop time.Duration `json:"idle_stop,omitempty"`
	// After are earlier tasks that must have come so far before it is queued.
	After []Dependency `json:"after,omitempty"`
	// Delay is the time from its submission until it may be queued.
	Delay time.Duration `json:"delay,omitempty"`
	// Group is the name of tasks that share a limit: it is queued while fewer
	// than Parallel of them are queued or placed. 0: no limit for it.
	Group    string `json:"group,omitempty"`
	Parallel int    `json:"parallel,omitempty"`
}

// Estimate is the GPU memory a task is predicted to need, on each of its GPUs.
type Estimate struct {
	// Memory is the upper bound that is booked; 0 when WholeGPU.
	Memory units.Bytes `json:"memory"`
	// Point is the likeliest figure where Memory is an upper bound; 0: unknown.
	// If only the upper bound is above every GPU, the task gets GPUs of its own.
	Point units.Bytes `json:"point,omitempty"`
	// WholeGPU: nothing is known, the task gets GPUs of its own.
	WholeGPU bool `json:"whole_gpu,omitempty"`
	// Large, with WholeGPU: it needs, or may need, more than a GPU that it shares can
	// give. Else nothing is known, and it may be learned.
	Large bool `json:"large,omitempty"`
	// Method is where the number comes from.
	Method Method `json:"method,omitempty"`
	// Share is the part of a GPU's whole memory that the task takes there by design,
	// in millionths, up to a whole GPU; Memory is that of the smallest GPU. 0: none.
	Share int64 `json:"share,omitempty"`
	// Plain is what the estimator said, of which a run of the task is a measurement.
	Plain RawEstimate `json:"plain,omitzero"`
}

// Method is the source of an estimate. The mapper knows only the two below;
// estimators have more, for people. Journals have these names, so they stay.
type Method string

// The methods that the history looks at.
const (
	Declared    Method = "declared" // the user gave it, and may know of more to come
	FromHistory Method = "history"  // earlier runs of the task's kind gave it
)

// Grant is the memory booked for a task on one GPU.
type Grant struct {
	GPU    GPUID       `json:"gpu"`
	Memory units.Bytes `json:"memory"`
}

// Class says how an attempt ended, as far as it matters for what follows.
type Class string

// The classes. What recovery does with each is in recovery.go.
const (
	ExitOK             Class = "ok"
	ExitProgram        Class = "program"           // the program's own fault
	ExitGPUOOM         Class = "gpu-oom"           // a GPU memory allocation failed
	ExitSuspectedOOM   Class = "suspected-gpu-oom" // an allocation failed, perhaps one of GPU memory
	ExitHostOOM        Class = "host-oom"          // the kernel killed it for host memory
	ExitInfrastructure Class = "infrastructure"    // the engine, driver or MPS failed under it
	ExitEvicted        Class = "evicted"           // MPS took its memory back
	ExitMPSFault       Class = "mps-fault"         // the MPS server failed under it
	ExitCannotStart    Class = "cannot-start"      // the container can never run as asked
	ExitStopped        Class = "stopped"           // carma stopped it
)

// Attempt is one run of a task on its GPUs.
type Attempt struct {
	N        int           `json:"n"` // from 1
	Grants   []Grant       `json:"grants"`
	Launched units.Instant `json:"launched"`          // memory booked
	Started  units.Instant `json:"started,omitempty"` // container running; 0: never
	Ended    units.Instant `json:"ended,omitempty"`
	// Away is the time for which it was suspended, Back when it last came back; 0:
	// never. Turn is when its slot began, less the time away by then; 0: at its start.
	SuspendedTime time.Duration `json:"away,omitempty"`
	Back          units.Instant `json:"back,omitempty"`
	Turn          units.Instant `json:"turn,omitempty"`
	// Absences are the last times for which it was suspended, but for the present one.
	Absences []SuspensionSpan `json:"absences,omitempty"`
	// Stays: it could not be suspended, and carma does not try again by itself.
	Stays bool `json:"stays,omitempty"`
	// Fills is the task for which its GPU was held when it was let there, until that one
	// has all its GPUs; 0: none.
	Fills TaskID `json:"fills,omitempty"`
	// Leaves: its program leaves its GPUs by itself when it is asked, see [VacatesOnRequest].
	Leaves bool  `json:"leaves,omitempty"`
	Class  Class `json:"class,omitempty"` // empty while it runs
	Code   int   `json:"code,omitempty"`
	// Peak is the highest memory seen in use on one of its GPUs.
	Peak units.Bytes `json:"peak,omitempty"`
	// Filled: it took most of a card at its start, needed or not.
	Filled bool `json:"filled,omitempty"`
	// Host is what is booked of its machine, HostPeak the highest host memory seen.
	Host     HostShare   `json:"host,omitzero"`
	HostPeak units.Bytes `json:"host_peak,omitempty"`
	// Devices says that it can no longer open the devices of its GPUs, or is nil.
	Devices *DeviceLoss `json:"devices,omitempty"`
	// Resized: Host was changed while it ran, see [Resize].
	Resized bool `json:"resized,omitempty"`
	// Message is the worker's text about its end, for people. Reason is why the
	// task went back to a queue after it.
	Message string `json:"message,omitempty"`
	Reason  Reason `json:"reason,omitzero"`
	// Blameless: another task caused its end, and it costs no retry.
	NotAtFault bool `json:"blameless,omitempty"`
	// Fault kept it from starting, where the task was not to blame. Starts is how
	// many failed launches in a row this entry stands for, with the number of the
	// last; 0: one.
	Fault  *Fault `json:"fault,omitempty"`
	Starts int    `json:"starts,omitempty"`
}

// Task is a task as the mapper knows it: the request, the estimate and what
// has happened to it so far.
type Task struct {
	Request
	Phase     Phase         `json:"phase"`
	Submitted units.Instant `json:"submitted"`
	Estimate  Estimate      `json:"estimate"`
	Expected  Expected      `json:"expected"`
	// Need is what the next launch books per GPU: the estimate at first,
	// more after a GPU OOM.
	NextGrant units.Bytes `json:"need"`
	// NextHostGrant is the host memory that the next launch books, where that is known
	// though it asked for none; 0: the part that goes with its GPUs.
	NextHostGrant units.Bytes `json:"host_need,omitempty"`
	// Alone: the next launch takes GPUs for itself.
	NextExclusive bool `json:"alone,omitempty"`
	// Learner: its memory is not known. A launch grants it all free memory of its
	// GPUs, of which there must be Need.
	Learner bool `json:"learner,omitempty"`
	// Doubt is the standard deviation of the SM activity in Expected; 0: that is
	// as good as known.
	Doubt float64 `json:"doubt,omitempty"`
	// Pace is how fast its output says the current attempt goes.
	Pace throughputState `json:"pace,omitzero"`
	// Moves counts how often it was stopped for slowing others down too much;
	// Moving: it is stopping for that.
	Evictions int  `json:"moves,omitempty"`
	Moving    bool `json:"moving,omitempty"`
	// Hold is who keeps it from being launched; nil: nobody. Back is the queue it
	// was in before it was held; empty: none.
	Hold *Hold `json:"hold,omitempty"`
	Back Phase `json:"back,omitempty"`
	// Suspension is set while it is suspending, suspended or resuming.
	Suspension *Suspension `json:"suspension,omitempty"`
	// Recall is set while it is stopping to go back to the queue.
	Recall *PendingRequeue `json:"recall,omitempty"`
	// Pinned are the GPUs that it goes to; none: any.
	Pinned []GPUID `json:"pinned,omitempty"`
	// Seat is its place in its line, if its user has moved one of their tasks.
	Seat *queuePosition `json:"seat,omitempty"`
	// Idle is what is known of it while it runs and does nothing.
	Idle Idleness `json:"idle,omitzero"`
	// Waits are the conditions of After that are not met yet. Due is the end of
	// its delay; 0: it is over.
	Waits []Dependency  `json:"waits,omitempty"`
	Due   units.Instant `json:"due,omitempty"`
	// QueuedAt is when it last entered a queue.
	QueuedAt units.Instant `json:"queued_at,omitempty"`
	// NotBefore delays the next launch (back-off after an infrastructure failure).
	NotBefore units.Instant `json:"not_before,omitempty"`
	// BlockedAt is when it became the first task that does not fit: the start of
	// its ageing. 0: not yet.
	BlockedAt units.Instant `json:"blocked_at,omitempty"`
	// Unfilled: one that filled a GPU held for it could not be suspended. No other may.
	Unfilled bool `json:"unfilled,omitempty"`
	// WayAt is when others last made way for it; 0: never.
	WayAt units.Instant `json:"way_at,omitempty"`
	// Behind is the highest task number at the time it last went to the back of
	// its queue, after its slot; 0: never.
	Behind TaskID `json:"behind,omitempty"`
	// Rank is its place in its lane: lower goes first, then lower numbers.
	Rank units.Instant `json:"rank,omitempty"`
	// Done is the work that the current attempt is predicted to have done up to
	// PacedAt, in seconds alone. Speed is its predicted speed; alone it is 1.
	Done    float64       `json:"done,omitempty"`
	Speed   float64       `json:"speed,omitempty"`
	PacedAt units.Instant `json:"paced_at,omitempty"`
	// Seen is its activity on each of its GPUs in the last attempt, if it was
	// alone there for a while.
	Seen []interference.Load `json:"seen,omitempty"`
	// Avoid are GPUs on which its infrastructure failed; used last.
	Avoid    []GPUID   `json:"avoid,omitempty"`
	Attempts []Attempt `json:"attempts,omitempty"`
	// OOMs counts GPU OOMs of its own, HostOOMs those of host memory, Failures program failures, Blameless ends
	// that others caused.
	OOMs       int `json:"ooms,omitempty"`
	HostOOMs   int `json:"host_ooms,omitempty"`
	Failures   int `json:"failures,omitempty"`
	NotAtFault int `json:"blameless,omitempty"`
	// Suspected: an attempt ended with a suspected GPU OOM, and it was given more memory
	// for that. ConfirmedOOM: there were two witnesses of one of its GPU OOMs.
	Suspected    bool `json:"suspected,omitempty"`
	ConfirmedOOM bool `json:"confirmed_oom,omitempty"`
	// Unstarted counts launches in a row that failed because of the engine or a
	// GPU. Strikes counts how often another task could start meanwhile.
	StartFailures                 int `json:"unstarted,omitempty"`
	StartFailuresWhileOthersStart int `json:"strikes,omitempty"`
	// From is where it stood before its last launch.
	From place `json:"from,omitzero"`
	// StopReason is set when it was asked to stop.
	StopReason Reason `json:"stop_reason,omitzero"`
	// TimedOut: it fails by the stop. That is for the time limit, because it did
	// nothing, or see [Cancel].
	TimedOut bool `json:"timed_out,omitempty"`
	// Overuse: the stop is carma's, as it used memory granted to others.
	Overuse bool `json:"overuse,omitempty"`
	// SlotUsed: the stop is carma's, so that others get their turn.
	SlotUsed bool `json:"slot_used,omitempty"`
	// Reason is why it went back to a queue, or why it ended as it did.
	Reason Reason `json:"reason,omitzero"`
	// Ended and Code are set when the phase is final.
	Ended units.Instant `json:"ended,omitempty"`
	Code  int           `json:"code,omitempty"`

	kin   kindLinks
	cache taskCache
}

// Current returns the attempt that has GPUs now, or nil.
func (t *Task) Current() *Attempt {
	if t.Phase.Placed() && len(t.Attempts) > 0 {
		return &t.Attempts[len(t.Attempts)-1]
	}
	return nil
}

// Alive returns the attempt that has a container, or is about to: that of a suspended
// task has no GPUs. Else nil.
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

// first reports whether a waiting task goes before those of the main queue.
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
	c.kin, c.cache = kindLinks{}, taskCache{}
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
