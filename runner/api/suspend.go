package api

import (
	"context"
	"time"
)

// Suspension is the state of a task that is suspending, suspended or resuming: off its
// GPUs, with their contents in host memory.
type Suspension struct {
	// By is the user who suspended it, or empty for carma itself.
	By  string `json:"by,omitempty" doc:"who suspended it; empty: carma"`
	Why string `json:"why,omitempty"`
	// Since is the time at which it left its GPUs, or zero if it has not left yet.
	Since time.Time `json:"since,omitzero" doc:"when it was off its GPUs; absent: it is not yet"`
	// Host is in bytes.
	Host int64 `json:"host" doc:"bytes of host memory booked for what it had on GPUs"`
	// From lists the GPUs that it had.
	From []GPURef `json:"from,omitempty" doc:"GPUs that it had"`
	Back bool     `json:"back,omitempty" doc:"it comes back as soon as there is room; else it waits to be resumed"`
	// HeldBy is the user who holds it until it is released, or empty.
	HeldBy   string `json:"held_by,omitempty" doc:"who holds it: it comes back only after it is released"`
	Failures int    `json:"failures,omitempty" doc:"how often it could not come back"`
	// Stopping is set if its end was requested.
	Stopping bool `json:"stopping,omitempty" doc:"it was asked to stop"`
}

// Suspend suspends a running task: it leaves its GPUs without ending.
func (c *Client) Suspend(ctx context.Context, ref string, n Note) (Task, error) {
	return SuspendTask.send(ctx, c, onTask(ref, n))
}

// Resume lets a suspended task resume as soon as there is room.
func (c *Client) Resume(ctx context.Context, ref string) (Task, error) {
	return ResumeTask.send(ctx, c, onTask(ref, Note{}))
}
