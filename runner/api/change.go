package api

import (
	"context"
	"encoding/json"
	"time"
)

// Update contains changes to a task that has not ended; unset fields stay. Allocations
// and the conditions for which the task waits can be changed only while it waits.
type Update struct {
	Name      *string           `json:"name,omitempty" maxLength:"128" doc:"unique among unfinished tasks"`
	Labels    map[string]string `json:"labels,omitempty" doc:"to be added or changed"`
	Unlabel   []string          `json:"unlabel,omitempty" doc:"keys of labels to be taken off"`
	Priority  *string           `json:"priority,omitempty" enum:"low,normal,high"`
	Retries   *int              `json:"retries,omitempty" minimum:"0"`
	TimeLimit *time.Duration    `json:"time_limit,omitempty" minimum:"0" doc:"in nanoseconds, from the attempt's start; 0: none"`
	Slot      *time.Duration    `json:"slot,omitempty" minimum:"0"`
	// The following fields can change while the task waits or runs; a running task keeps its
	// present use.
	HostMem     *int64   `json:"host_mem,omitempty" minimum:"0" doc:"host memory it may use, in bytes; 0: as if none was asked for"`
	CPUs        *float64 `json:"cpus,omitempty" minimum:"0" doc:"processors it may use; 0: as if none were asked for"`
	HostReserve *int64   `json:"host_reserve,omitempty" minimum:"0" doc:"host memory that is booked for it, in bytes"`
	CPUsReserve *float64 `json:"cpus_reserve,omitempty" minimum:"0" doc:"processors that are booked for it"`
	// The following fields can change only while the task waits.
	Mem       *int64            `json:"mem,omitempty" minimum:"0" doc:"declared peak memory per GPU in bytes; 0: estimate it"`
	EstModel  *string           `json:"est_model,omitempty" maxLength:"200"`
	Network   json.RawMessage   `json:"network,omitempty" doc:"description of the model, as in a submission; with est_model"`
	Train     map[string]string `json:"train,omitempty" doc:"settings of its training to add or change"`
	BatchSize *int              `json:"batch_size,omitempty" minimum:"0"`
	GPUs      *int              `json:"gpus,omitempty" minimum:"1"`
	Exclusive *bool             `json:"exclusive,omitempty"`
	After     *[]Dependency     `json:"after,omitempty" doc:"replaces what it waits for; only before its first launch"`
}

// Note is a user's comment on a change.
type Note struct {
	Why string `json:"why,omitempty" maxLength:"1000" doc:"for people"`
}

// RequeueRequest stops a running task and puts it back into the queue.
type RequeueRequest struct {
	Why  string `json:"why,omitempty" maxLength:"1000" doc:"for people"`
	Hold bool   `json:"hold,omitempty" doc:"hold it then"`
}

// MoveRequest moves a pending task within the order of its owner's pending tasks.
type MoveRequest struct {
	Last bool `json:"last,omitempty" doc:"behind them; else before them"`
}

// Closure prevents launches of tasks.
type Closure struct {
	By    string    `json:"by,omitempty"`
	Why   string    `json:"why,omitempty"`
	Since time.Time `json:"since,omitzero"`
	Move  bool      `json:"move,omitempty" doc:"its tasks move to other GPUs, as these have room"`
	Until time.Time `json:"until,omitzero" doc:"when it ends by itself; absent: when somebody ends it"`
}

// CloseRequest cordons GPUs, or pauses all launches, or reverts this.
type CloseRequest struct {
	GPUs []string      `json:"gpus,omitempty" doc:"indexes or UUIDs; not for launching"`
	All  bool          `json:"all,omitempty" doc:"all GPUs"`
	Open bool          `json:"open,omitempty" doc:"open them again"`
	Why  string        `json:"why,omitempty" maxLength:"1000" doc:"for people"`
	For  time.Duration `json:"for,omitempty" minimum:"0" doc:"in nanoseconds; 0: until somebody opens them"`
	Move bool          `json:"move,omitempty" doc:"move the tasks there to other GPUs without ending them, where that can be and as these have room; not for launching"`
}

// Update changes a task that has not ended.
func (c *Client) Update(ctx context.Context, ref string, u Update) (Task, error) {
	return UpdateTask.send(ctx, c, onTask(ref, u))
}

// Hold keeps a pending task from being launched; Release releases it.
func (c *Client) Hold(ctx context.Context, ref string, n Note) (Task, error) {
	return HoldTask.send(ctx, c, onTask(ref, n))
}

// Release releases a held task.
func (c *Client) Release(ctx context.Context, ref string) (Task, error) {
	return ReleaseTask.send(ctx, c, onTask(ref, Note{}))
}

// Requeue puts a running task back into the queue.
func (c *Client) Requeue(ctx context.Context, ref string, r RequeueRequest) (Task, error) {
	return RequeueTask.send(ctx, c, onTask(ref, r))
}

// Move moves a pending task within the queue order of its owner's tasks.
func (c *Client) Move(ctx context.Context, ref string, m MoveRequest) (Task, error) {
	return MoveTask.send(ctx, c, onTask(ref, m))
}

// CloseGPUs drains or uncordons GPUs, and returns all GPUs.
func (c *Client) CloseGPUs(ctx context.Context, r CloseRequest) ([]GPU, error) {
	return DrainGPUs.send(ctx, c, With[CloseRequest]{r})
}

// PauseLaunching pauses all launches, or resumes them.
func (c *Client) PauseLaunching(ctx context.Context, r CloseRequest) (Info, error) {
	return PauseLaunches.send(ctx, c, With[CloseRequest]{r})
}

// Shapes reports whether an update changes the allocation of a launch.
func (u *Update) Shapes() bool {
	return u.Mem != nil || u.EstModel != nil || len(u.Train) > 0 || u.BatchSize != nil || u.GPUs != nil || u.Exclusive != nil
}

// Hosts reports whether an update changes host memory or processors.
func (u *Update) Hosts() bool {
	return u.HostMem != nil || u.HostReserve != nil || u.CPUs != nil || u.CPUsReserve != nil
}

// PinRequest selects the GPUs of a task.
type PinRequest struct {
	GPUs []string `json:"gpus,omitempty" doc:"indexes or UUIDs"`
	Any  bool     `json:"any,omitempty" doc:"any again"`
	Stop bool     `json:"stop,omitempty" doc:"if it runs elsewhere, stop it and start it again there"`
}

// Reservation reserves GPUs, or memory on them, for a user or a group for a time.
type Reservation struct {
	ID     int       `json:"id"`
	GPUs   []GPURef  `json:"gpus"`
	Memory int64     `json:"memory,omitempty" doc:"bytes on each GPU; absent: the whole GPU"`
	For    string    `json:"for" doc:"a user, or @group"`
	From   time.Time `json:"from"`
	Until  time.Time `json:"until"`
	By     string    `json:"by,omitempty"`
	Why    string    `json:"why,omitempty"`
}

// ReserveRequest requests a reservation.
type ReserveRequest struct {
	GPUs   []string  `json:"gpus,omitempty" doc:"indexes or UUIDs; else count"`
	Count  int       `json:"count,omitempty" minimum:"0" doc:"so many GPUs, which are chosen now"`
	Memory int64     `json:"memory,omitempty" minimum:"0" doc:"bytes on each GPU; 0: the whole GPU"`
	For    string    `json:"for" doc:"a user, or @group"`
	From   time.Time `json:"from,omitzero" doc:"absent: now"`
	Until  time.Time `json:"until,omitzero"`
	Why    string    `json:"why,omitempty" maxLength:"1000" doc:"for people"`
}

// Pin selects the GPUs of a task.
func (c *Client) Pin(ctx context.Context, ref string, r PinRequest) (Task, error) {
	return PinTask.send(ctx, c, onTask(ref, r))
}

// Reserve makes a reservation.
func (c *Client) Reserve(ctx context.Context, r ReserveRequest) (Reservation, error) {
	return Reserve.send(ctx, c, With[ReserveRequest]{r})
}

// Unreserve ends a reservation.
func (c *Client) Unreserve(ctx context.Context, id int) error {
	_, err := Unreserve.send(ctx, c, ReservationPath{id})
	return err
}

// Reservations lists the reservations.
func (c *Client) Reservations(ctx context.Context) ([]Reservation, error) {
	return ListReservations.send(ctx, c, None{})
}

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
