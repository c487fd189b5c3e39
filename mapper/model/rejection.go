package model

import (
	"time"

	"carma/internal/units"
)

const (
	// RulePinned: the task is pinned to other GPUs.
	RulePinned Rule = "pinned"
	// RulePart: the GPU is a part of a card, and the task is on several GPUs.
	RulePart Rule = "part"
)

// RuleClosed: the GPU is cordoned.
const RuleClosed Rule = "closed"

// RuleAfter, RuleDelay and RuleGroup say why a held task is in no queue.
const (
	RuleAfter Rule = "after"
	RuleDelay Rule = "delay"
	RuleGroup Rule = "group"
)

// ImpossibleError says that this machine can never meet a request, with the nearest
// possible value.
type ImpossibleError struct {
	Option string // the command line option at fault: "gpus", "mem"
	Reason Reason
}

// Error returns the code of the reason; mapper/words has the sentence.
func (e *ImpossibleError) Error() string { return string(e.Reason.Code) }

// RuleHost does not concern a GPU: the machine lacks host memory or processors.
const RuleHost Rule = "host"

// Rule names the precondition by which a GPU was rejected.
type Rule string

// The preconditions, in the order they are checked. A GPU that fails a later
// one is closer to being usable.
const (
	RuleFault    Rule = "fault"     // it has a fault, or was not found
	RuleSick     Rule = "sick"      // containers do not start on it
	RuleKept     Rule = "held"      // reserved for a task that has waited too long
	RuleAlone    Rule = "alone"     // another task has it exclusively
	RuleIdle     Rule = "idle"      // an idle GPU is needed, and it is not idle
	RuleForeign  Rule = "foreign"   // wanted exclusively, but other processes use it
	RuleMaxTasks Rule = "max-tasks" // as many tasks as allowed
	RuleMemory   Rule = "memory"    // the grant does not fit
	RuleMinFree  Rule = "min-free"  // less free memory than required for any task
	RuleSMACT    Rule = "smact"     // too busy
	RuleWarmUp   Rule = "warm-up"   // the newest task there is still warming up

	RuleSharing     Rule = "sharing"     // Lucid's sharing scores sum to too much
	RuleUtilization Rule = "utilization" // the expected GPU utilizations do
	RuleUnseen      Rule = "unseen"      // the activity of a task there is not known yet
	RuleSlowdown    Rule = "slowdown"    // a task would be slowed down too much
	RuleWait        Rule = "wait"        // waiting is expected to end sooner than sharing
)

// Rejection is the reason why a GPU was rejected for a task. Which fields are set depends on
// the rule.
type Rejection struct {
	GPU   GPUID `json:"gpu"`
	Index int   `json:"index"`
	Rule  Rule  `json:"rule"`
	// Have, Need and Of are the memory committed or free, the memory needed
	// and the limit, for the memory rules.
	Have units.Bytes `json:"have,omitempty"`
	Need units.Bytes `json:"need,omitempty"`
	Of   units.Bytes `json:"of,omitempty"`
	// SMACT and Cap are set for RuleSMACT, Slowdown and Cap for RuleSlowdown. Allowed is
	// the configured cap if Cap is lower, so that the configured cap holds in the likely
	// worst case.
	SMACT    float64 `json:"smact,omitempty"`
	Slowdown float64 `json:"slowdown,omitempty"`
	Cap      float64 `json:"cap,omitempty"`
	Allowed  float64 `json:"allowed,omitempty"`
	// Learner is, for RuleMemory, a resident that has all free memory until its need is
	// known, or 0. Its need is known Span after it has begun to train.
	Learner TaskID        `json:"learner,omitempty"`
	Span    time.Duration `json:"span,omitempty"`
	// Task is the blocking task, for RuleKept, RuleAlone and RuleWarmUp, or the task that
	// would be slowed down, for RuleSlowdown, where 0 means the task itself.
	Task TaskID `json:"task,omitempty"`
	// Tasks is the number of tasks there, for RuleIdle, RuleMaxTasks and RuleWait.
	Tasks int `json:"tasks,omitempty"`
	// Fault is the fault of the GPU, for RuleFault and RuleSick, in the words of the component
	// that found it; Missing: the GPU was not found. Remedy is the fix, for RuleSick.
	Fault   string `json:"fault,omitempty"`
	Remedy  string `json:"remedy,omitempty"`
	Missing bool   `json:"missing,omitempty"`
	// Closed is the cordon of the GPU, for RuleClosed.
	Closed *Cordon `json:"closed,omitempty"`
	// Reserved is the reservation, for RuleReserved.
	Reserved *Reservation `json:"reserved,omitempty"`
}

// RuleHold: somebody holds the task.
const RuleHold Rule = "hold"

// RuleQuota and RuleFairShare do not concern a GPU: the user has reached a quota, or
// other users go first.
const (
	RuleQuota     Rule = "quota"
	RuleFairShare Rule = "fair-share"
)

// RuleReserved: a GPU is reserved for somebody else, and the task would run into that.
const RuleReserved Rule = "reserved"

// RuleSuspended: a suspended task cannot resume on this GPU.
const RuleSuspended Rule = "suspended"
