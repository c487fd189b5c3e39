package model

import (
	"cmp"
	"time"

	"carma/internal/units"
	"carma/mapper/interference"
)

// Condition is the state that a task must have reached before a dependent task may start.
type Condition string

// The conditions.
const (
	AfterOK      Condition = "ok"      // it has succeeded
	AfterAny     Condition = "any"     // it has ended with any result
	AfterStarted Condition = "started" // a container of it has run
)

// Dependency is a condition on another task that must be met before a task is queued.
type Dependency struct {
	Task      TaskID    `json:"task"`
	Condition Condition `json:"condition"`
}

// Follows reports whether a task that ended in a phase meets a condition. started reports
// whether a container of the task has run.
func (c Condition) Follows(phase Phase, started bool) bool {
	switch c {
	case AfterOK:
		return phase == Succeeded
	case AfterStarted:
		return started || phase == Succeeded
	}
	return c == AfterAny
}

// RawEstimate is an estimate as the estimator gave it, before runs here corrected it. The
// mapper only stores it beside the memory used by a run; estimators learn from both.
type RawEstimate struct {
	// Group names the estimates that share an error: by method, environment and family of
	// networks. Model names what was estimated. Both are empty if no model was estimated.
	Group string `json:"group,omitempty"`
	Model string `json:"model,omitempty"`
	// Point is the likeliest memory, Upper the bound.
	Point units.Bytes `json:"point,omitempty"`
	Upper units.Bytes `json:"upper,omitempty"`
}

// ExceedsByMargin reports whether the upper bound exceeds most and the point estimate does not.
func (e Estimate) ExceedsByMargin(most units.Bytes) bool {
	return e.Memory > most && e.Point > 0 && e.Point <= most
}

// MostCPUs bounds the processors of a machine and of a task.
const MostCPUs = 1_000_000_000

// HostRequest returns the host memory that a task has requested, or 0 if none.
func (r *Request) HostRequest() units.Bytes { return cmp.Or(r.HostReserve, r.HostMem) }

// Expected is the profile of a task's run before it starts, except its memory.
type Expected struct {
	// Loads are the task's activity on each of its GPUs when it is alone there, or empty
	// if not known. The last one applies to further GPUs.
	Loads []interference.Load `json:"loads,omitempty"`
	// RunTime is the typical run time alone of its model, or 0 if not known.
	RunTime time.Duration `json:"run_time,omitempty"`
	// Source says where they come from, for people.
	Source string `json:"source,omitempty"`
}

// UnknownLoad is the activity assumed for a task without history: the activity of
// training a large network. Once the task has run for a while, samples replace it.
var UnknownLoad = interference.Load{SMACT: 0.7, SMOCC: 0.3, DRAMA: 0.3}

// SourceSeen is the source of an activity measured by samples of the task.
const SourceSeen = "seen"

// SourceHistory is the source of an activity measured in earlier runs of the kind.
const SourceHistory = "history"

// Normalize adjusts the request to what is possible.
func (r *Request) Normalize() {
	r.GPUs, r.HostMem, r.CPUs = max(r.GPUs, 1), r.HostMem.Clamp(), max(0, min(r.CPUs, MostCPUs))
	if r.HostReserve = r.HostReserve.Clamp(); r.HostMem > 0 {
		r.HostReserve = min(r.HostReserve, r.HostMem)
	}
	if r.NoGPU {
		r.GPUs, r.Exclusive = 0, false
	}
}

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

// WholeGPU is a whole GPU, in the unit of shares.
const WholeGPU = 1_000_000

// Conditions lists all conditions.
var Conditions = []Condition{AfterOK, AfterAny, AfterStarted}
