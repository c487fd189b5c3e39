package model

import (
	"slices"
	"time"

	"carma/internal/units"
)

// ScopeUnknown means that the engine's message does not name the cause.
const ScopeUnknown BreakerScope = "unknown"

// BreakerScope says where a fault is that kept a container from starting.
type BreakerScope string

// The scopes, beside [ScopeNamespace].
const (
	ScopeEngine BreakerScope = "engine" // the container engine, or a part of the machine that it depends on
	ScopeGPU    BreakerScope = "gpu"    // the GPUs it was to get, or their driver
)

// Fault is the reason why an attempt could not start although the task is not at fault.
type Fault struct {
	Scope BreakerScope `json:"scope"`
	// Code names the fault for programs, Cause and Remedy for people. The mapper only
	// stores them.
	Code   string `json:"code,omitempty"`
	Cause  string `json:"cause"`
	Remedy string `json:"remedy,omitempty"`
	// GPUs are the GPUs at fault, or empty if all GPUs of the attempt are.
	GPUs []GPUID `json:"gpus,omitempty"`
}

// MaxFailedTasks bounds the number of failed tasks that are stored.
const MaxFailedTasks = 64

// Breaker counts consecutive failed starts on the engine or on a GPU, or refusals by a
// namespace.
type Breaker struct {
	Namespace string `json:"namespace,omitempty"`
	// Unknown: the messages did not say the cause, and evidence points to the engine.
	Unknown bool `json:"unknown,omitempty"`

	Fault    Fault         `json:"fault"` // the latest
	Since    units.Instant `json:"since"`
	Failures int           `json:"failures"`
	// Tasks are the tasks whose starts have failed, the latest last.
	Tasks []TaskID `json:"tasks"`
	// Wait is the time between two probe launches, or 0 if launching is not paused.
	Wait time.Duration `json:"wait,omitempty"`
	// Test is the earliest instant of the next probe launch, Testing the task of the last
	// one.
	Test    units.Instant `json:"test,omitempty"`
	Testing TaskID        `json:"testing,omitempty"`
}

// Paused reports whether only probe launches are allowed.
func (i *Breaker) Paused() bool { return i != nil && i.Wait > 0 }

// Open reports whether not even a probe launch is allowed now.
func (i *Breaker) Open(now units.Instant) bool { return i.Paused() && now < i.Test }

// Clone returns a deep copy, or nil for nil.
func (i *Breaker) Clone() *Breaker {
	if i == nil {
		return nil
	}
	c := *i
	c.Tasks = slices.Clone(i.Tasks)
	return &c
}

// Concerns reports whether a GPU of the attempt is at fault.
func (f *Fault) Concerns(id GPUID) bool {
	return f.Scope == ScopeGPU && (len(f.GPUs) == 0 || slices.Contains(f.GPUs, id))
}

// AddFailed makes a task the latest whose start has failed.
func (i *Breaker) AddFailed(id TaskID) {
	i.Tasks = append(slices.DeleteFunc(i.Tasks, func(o TaskID) bool { return o == id }), id)
	i.Tasks = i.Tasks[max(0, len(i.Tasks)-MaxFailedTasks):]
}

// ScopeNamespace: the namespace of the task takes no more now.
const ScopeNamespace BreakerScope = "namespace"
