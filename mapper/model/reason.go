package model

import (
	"encoding/json"
	"strings"
	"time"

	"carma/internal/units"
)

// Reason is the reason for a decision or for which a task waits: a code, and its figures. Each
// code says which fields it sets; the others are 0. The zero Reason means no reason. Package
// mapper/words turns a Reason into a sentence; nothing in the core uses the words.
//
// A Reason is a value and never changes once it is made, its cause included.
type Reason struct {
	Code ReasonCode `json:"code"`
	Task TaskID     `json:"task,omitempty"` // another task
	GPU  int        `json:"gpu,omitempty"`  // the index of a GPU
	// Have, Need and Of are memory: the memory present or in use, the memory needed, and
	// the limit or the allocation.
	Have units.Bytes `json:"have,omitempty"`
	Need units.Bytes `json:"need,omitempty"`
	Of   units.Bytes `json:"of,omitempty"`
	// Helpers is the part of Of that is allocated to the helpers of suites.
	Helpers units.Bytes `json:"helpers,omitempty"`
	// Count, More and Limit are numbers of tasks, GPUs or attempts.
	Count int `json:"count,omitempty"`
	More  int `json:"more,omitempty"`
	Limit int `json:"limit,omitempty"`
	// Percent is a ratio, times 100.
	Percent int `json:"percent,omitempty"`
	// Span is a duration, Most the longest one allowed.
	Span time.Duration `json:"span,omitempty"`
	Most time.Duration `json:"most,omitempty"`
	// Name is the name of a user or a group.
	Name      string    `json:"name,omitempty"`
	Condition Condition `json:"condition,omitempty"`
	// Text is words from outside: a user's reason, a message of a program or the engine. Remedy is
	// the fix. No decision depends on them, and Equal ignores them.
	Text   string `json:"text,omitempty"`
	Remedy string `json:"remedy,omitempty"`
	// Cause is the reason behind this one.
	Cause *Reason `json:"cause,omitempty"`
}

// ReasonCode names a reason. Codes are in journals, so their names must not change.
type ReasonCode string

// Why a task was asked to stop.
const (
	ReasonAsked     ReasonCode = "asked"      // somebody asked for it; Text is why, if they said so
	ReasonTimeLimit ReasonCode = "time-limit" // Span: its time limit
	ReasonIdle      ReasonCode = "idle"       // Span: its idle time
	ReasonSlotUsed  ReasonCode = "slot-used"  // Span: its slot; others wait
	ReasonSlowing   ReasonCode = "slowing"    // it slowed Task on GPU down to Percent of its time alone, more than allowed
	ReasonMoved     ReasonCode = "moved"      // Name moves it to other GPUs
	ReasonRecalled  ReasonCode = "recalled"   // Name requeued it; Text is why, if they said so
	ReasonOveruse   ReasonCode = "overuse"    // it used Have, more than its grant Of, on GPU; others need the room
)

// Why an attempt ended that was not asked to stop. Text is its message. The task has
// ended or runs again.
const (
	ReasonProgram        ReasonCode = "program"        // the program's own fault; Count: its exit code
	ReasonHostOOM        ReasonCode = "host-oom"       // the kernel killed it for host memory
	ReasonCannotStart    ReasonCode = "cannot-start"   // the container can never run as asked
	ReasonRetry          ReasonCode = "retry"          // it runs again, for the Count-th of Limit times; Cause is why it ended
	ReasonInfrastructure ReasonCode = "infrastructure" // not its own fault, as the next three
	ReasonEvicted        ReasonCode = "evicted"
	ReasonMPSFault       ReasonCode = "mps-fault"
	ReasonStopped        ReasonCode = "stopped"
	ReasonTooOften       ReasonCode = "too-often"     // through no fault of its own, Count times; Cause is the last
	ReasonUnstarted      ReasonCode = "unstarted"     // it could not be started; it fails after Limit more failed starts; Limit 0: the engine or a GPU may be at fault
	ReasonNeverStarted   ReasonCode = "never-started" // Count starts failed, and the engine is not at fault; Cause is the last
	ReasonOthersStart    ReasonCode = "others-start"  // Count times others could start where it could not; Cause is the last
)

// What follows a GPU OOM. Cause names the owner of the memory that caused it.
const (
	ReasonOOM          ReasonCode = "gpu-oom"           // it runs again with more
	ReasonOOMSuspected ReasonCode = "gpu-oom-suspected" // it runs once more with more memory; Text: what it printed
	ReasonOOMBlameless ReasonCode = "gpu-oom-blameless" // it runs again: others used its memory
	ReasonOOMAlone     ReasonCode = "gpu-oom-alone"     // it had a GPU exclusively: there is no more memory
	ReasonOOMTooOften  ReasonCode = "gpu-oom-too-often" // in Count attempts
)

// Whose memory a task lacked; ReasonOveruse is also used here.
const (
	ReasonWantedMore ReasonCode = "wanted-more" // it wanted Need and had Have granted
	ReasonRanOut     ReasonCode = "ran-out"     // it had Have granted; its need is not known
	ReasonForeignUse ReasonCode = "foreign-use" // other processes use Have on GPU
	ReasonNeighbour  ReasonCode = "neighbour"   // Task used Have, more than its grant Of, on GPU
)

// Why a request can never be met. After a GPU OOM, Cause is the OOM.
const (
	ReasonTooManyGPUs   ReasonCode = "too-many-gpus"      // Count requested, there are Limit
	ReasonOnlyParts     ReasonCode = "only-parts"         // Count requested; of the GPUs Limit are whole cards, the others MIG instances
	ReasonTooMuchMemory ReasonCode = "too-much-memory"    // Need on Count GPUs; Of is the most available
	ReasonNeverGPUs     ReasonCode = "never-quota-gpus"   // Count requested, a user may have Limit
	ReasonNeverAlone    ReasonCode = "never-quota-alone"  // Count exclusive GPUs come to Need, a user may have Of
	ReasonNeverMemory   ReasonCode = "never-quota-memory" // Need in all, a user may have Of
	ReasonSlotTooLong   ReasonCode = "slot-too-long"      // Span requested, the longest is Most
)

// Why a task that depends on another task, Task, will not run.
const (
	ReasonAfterUnknown   ReasonCode = "after-unknown"   // Condition does not exist
	ReasonAfterLater     ReasonCode = "after-later"     // Task was not submitted before it
	ReasonAfterForgotten ReasonCode = "after-forgotten" // Task is not known any more
	ReasonAfterFailed    ReasonCode = "after-failed"    // Task failed before it met Condition
	ReasonAfterCancelled ReasonCode = "after-cancelled" // Task was cancelled before it met Condition
)

// Why a task is in no queue yet.
const (
	ReasonAfter ReasonCode = "after" // it depends on Task meeting Condition, and on More others
	ReasonDelay ReasonCode = "delay" // Span is left
	ReasonHold  ReasonCode = "hold"  // Name holds it, for Span now; Text is why, if they said so
	ReasonGroup ReasonCode = "group" // Count tasks of the group Name run or are queued, of Limit
)

// Why a queued task does not start.
const (
	ReasonEngineDown    ReasonCode = "engine-down"     // Text: its fault, if known
	ReasonPaused        ReasonCode = "paused"          // Name paused launching, for the reason Text; it resumes in Span, if that is not 0
	ReasonEngineSick    ReasonCode = "engine-sick"     // it starts nothing, for the cause Text; tried again in Span
	ReasonNoGPU         ReasonCode = "no-gpu"          // there is none on this machine
	ReasonBackOff       ReasonCode = "back-off"        // tried again in Span, after Cause
	ReasonQuotaTasks    ReasonCode = "quota-tasks"     // the user Name has Count running, of Limit
	ReasonQuotaGPUs     ReasonCode = "quota-gpus"      // the user Name has Count and wants More, of Limit
	ReasonQuotaMemory   ReasonCode = "quota-memory"    // the user Name has Have and wants Need, of Of
	ReasonNamespaceFull ReasonCode = "namespace-full"  // the namespace Name takes no more, for the cause Text; tried again in Span
	ReasonRecoveryFirst ReasonCode = "recovery-first"  // the recovery queue goes first
	ReasonInterval      ReasonCode = "interval"        // one launch every Span
	ReasonHanding       ReasonCode = "handing"         // Count launches are in flight to the engine, of Limit at a time
	ReasonFairShare     ReasonCode = "fair-share"      // Count later tasks of others go first; see Why.Turn
	ReasonLookAhead     ReasonCode = "look-ahead"      // Count are ahead of it; no more than Limit are passed over
	ReasonLookedAtLater ReasonCode = "looked-at-later" // it fits; the queue is scheduled again within Span
	ReasonAboutToStart  ReasonCode = "about-to-start"
	ReasonScattered     ReasonCode = "scattered"   // Count GPUs fit, but no Limit of one machine
	ReasonTurnedDown    ReasonCode = "turned-down" // Count of Limit GPUs fit; Why.Nearest is the nearest rejection
)

// ReasonText is a reason of which only the words are known: a sentence in a journal of an
// older version.
const ReasonText ReasonCode = "text"

// Equal reports whether two reasons have the same code and figures. Texts do not count,
// and a ReasonText equals any reason.
func (r Reason) Equal(o Reason) bool {
	if r.Code == ReasonText || o.Code == ReasonText {
		return true
	}
	a, b := r.Cause, o.Cause
	r.Text, r.Remedy, r.Cause = "", "", nil
	o.Text, o.Remedy, o.Cause = "", "", nil
	return r == o && (a == nil) == (b == nil) && (a == nil || a.Equal(*b))
}

// UnmarshalJSON reads a reason. Older versions wrote a sentence.
func (r *Reason) UnmarshalJSON(b []byte) error {
	*r = Reason{}
	if len(b) > 0 && b[0] == '"' {
		if err := json.Unmarshal(b, &r.Text); err != nil {
			return err
		}
		if r.Text != "" {
			r.Code = ReasonText
		}
		return nil
	}
	type plain Reason // without this method
	return json.Unmarshal(b, (*plain)(r))
}

// StopCode returns the code of a stop. Older versions recorded a sentence, and the effect
// of a stop depends on its reason: these are the sentences of those versions.
func (r Reason) StopCode() ReasonCode {
	switch {
	case r.Code != ReasonText:
		return r.Code
	case strings.HasPrefix(r.Text, "time limit of "):
		return ReasonTimeLimit
	case strings.HasPrefix(r.Text, "time slot of "):
		return ReasonSlotUsed
	case strings.HasSuffix(r.Text, "and others need the room"):
		return ReasonOveruse
	}
	return ReasonAsked
}

// WithCause returns the reason with a cause.
func (r Reason) WithCause(cause Reason) Reason {
	r.Cause = &cause
	return r
}

// ReasonFilled: it backfilled a GPU that was reserved for Task, which starts now; for
// Span now. ReasonFills: it backfills GPU, which is reserved for Task.
const (
	ReasonFilled ReasonCode = "filled"
	ReasonFills  ReasonCode = "fills"
)

// Why a task waits for its machine, regardless of GPUs.
const (
	ReasonHostMemory ReasonCode = "host-memory" // it needs Need host memory, Have of Of can be allocated
	ReasonHostCPUs   ReasonCode = "host-cpus"   // it needs More thousandths of a processor, Count of Limit are allocated
	ReasonHostLow    ReasonCode = "host-low"    // only Have of the machine's memory, Of, is available: nothing is launched
	ReasonHostKept   ReasonCode = "host-kept"   // the machine's memory is reserved for Task, which has waited too long
)

// Why a task needed more host memory, and why it was stopped for it.
const (
	ReasonHostAgain   ReasonCode = "host-oom-again" // it used Have and runs again with Need allocated
	ReasonHostAll     ReasonCode = "host-oom-all"   // it had Have: there is no more memory
	ReasonHostOveruse ReasonCode = "host-overuse"   // the machine ran low, and it used Have, more than its allocation Of
	ReasonTooMuchHost ReasonCode = "too-much-host"  // it needs Need host memory, a task may have Of
	ReasonTooManyCPUs ReasonCode = "too-many-cpus"  // it needs More thousandths of a processor, there are Limit
)

// ReasonMadeWay: it was suspended for Task, which goes before it; for Span now.
const ReasonMadeWay ReasonCode = "made-way"

// ReasonWay: Count tasks are being suspended for it, first Task on GPU.
const ReasonWay ReasonCode = "way"

// ReasonHostInUse: a running task uses Have of host memory, more than the new limit Of.
const ReasonHostInUse ReasonCode = "host-in-use"

// ReasonDrained: Name drains GPU and moves its tasks; Text is why.
const ReasonDrained ReasonCode = "drained"

// ResumesOnItsOwn reports whether a task suspended for a reason resumes as soon as there
// is room. An idle task does not, because it would be idle again.
func (r Reason) ResumesOnItsOwn() bool { return r.Code != ReasonSuspended && r.Code != ReasonIdle }

// isTimeSlice reports whether a suspended task waits at the back of its queue, because it
// has used its slot.
func (r Reason) isTimeSlice() bool { return r.Code == ReasonSlotUsed }

// ReasonFoundAway: it was found suspended, which was not in the journal.
const ReasonFoundAway ReasonCode = "found-away"

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

// ReasonSwapped: it was suspended for Task, which is shorter and takes at most Most; for
// Span now.
const ReasonSwapped ReasonCode = "swapped"

// moves reports whether a task that is suspended for a reason must resume on other GPUs.
// A program that vacates its GPUs on request can only return to the same ones.
func (r Reason) moves() bool {
	return r.Code == ReasonMoved || r.Code == ReasonSlowing || r.Code == ReasonDrained
}
