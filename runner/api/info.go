package api

import (
	"context"
	"os"
	"time"
)

// Info describes the daemon.
type Info struct {
	Version string    `json:"version"`
	Now     time.Time `json:"now"`
	// Speed is simulated time per wall-clock time, 1 on real GPUs.
	Speed   float64 `json:"speed"`
	PID     int     `json:"pid"`
	DataDir string  `json:"data_dir"`
	Driver  string  `json:"driver"`
	Source  string  `json:"source" doc:"where the GPUs come from: sim:dgx-station-a100"`
	// Simulated is set if the GPUs are not real.
	Simulated bool   `json:"simulated"`
	Policy    string `json:"policy"`
	// Engine is empty while the container engine does not answer.
	Engine     string `json:"engine,omitempty"`
	EngineDown string `json:"engine_down,omitempty" doc:"why the engine cannot be used now"`
	Queued     int    `json:"queued"`
	Running    int    `json:"running"`
	Suspended  int    `json:"suspended,omitempty" doc:"tasks off their GPUs that have not ended"`
	// Held is the number of unfinished tasks that are in no queue yet.
	Held int `json:"held"`
	// Output describes the stored output of tasks.
	Output *Output `json:"output,omitempty"`
	// KeepTasks and KeepTasksFor limit the finished tasks that are kept. 0 means no limit.
	KeepTasks    int           `json:"keep_tasks,omitempty" doc:"finished tasks kept at most"`
	KeepTasksFor time.Duration `json:"keep_tasks_for,omitempty" doc:"in nanoseconds: how long finished tasks are kept"`
	// Host is nil if host memory is not allocated, as on simulated servers.
	Host *Host `json:"host,omitempty"`
	// Energy is the energy used by the GPUs, or nil if unknown.
	Energy *Energy `json:"energy,omitempty"`
	// Trouble lists the problems that prevent tasks from starting now, the widest scope
	// first.
	Trouble []Trouble `json:"trouble,omitempty"`
	// Paused is set while somebody has paused launching.
	Paused *Closure `json:"paused,omitempty"`
	// Draining is set if nothing is launched any more, and the daemon ends with its last
	// running task.
	Draining bool `json:"draining,omitempty"`
}

// Output is the disk use of the tasks' output, with its limits.
type Output struct {
	Dir   string           `json:"dir"`
	Bytes int64            `json:"bytes" doc:"what it takes; after a start that is counted in the background"`
	Total int64            `json:"total" doc:"the most it may take"`
	User  int64            `json:"user" doc:"the most of one user"`
	Task  int64            `json:"task" doc:"the most of one task"`
	Free  int64            `json:"free" doc:"what it leaves free on its disk"`
	Users map[string]int64 `json:"users,omitempty"`
	Tasks int              `json:"tasks" doc:"tasks with output"`
	// Finished is the number of finished tasks that are kept.
	Finished int    `json:"finished"`
	Trouble  string `json:"trouble,omitempty" doc:"why output cannot be kept now"`
}

// Trouble is a problem that prevents tasks from starting, without their fault.
type Trouble struct {
	Scope string `json:"scope" enum:"daemon,engine,gpu"`
	// GPU is the index of the GPU, for scope gpu.
	GPU    *int   `json:"gpu,omitempty"`
	Code   string `json:"code,omitempty"`
	Text   string `json:"text" doc:"what it is, a clause"`
	Cause  string `json:"cause,omitempty"`
	Remedy string `json:"remedy,omitempty"`
	// Since is the time of the first observation, Failures the number of consecutive failed
	// starts, NextTest the time at which the next task is started as a test.
	Since    time.Time `json:"since,omitzero"`
	Failures int       `json:"failures,omitempty"`
	NextTest time.Time `json:"next_test,omitzero"`
}

// String describes the problem in a sentence, with the fix.
func (t Trouble) String() string {
	if t.Remedy == "" {
		return t.Text
	}
	return t.Text + "; to mend it: " + t.Remedy
}

// Check is one line of carma doctor.
type Check struct {
	Name   string `json:"name"`
	Status string `json:"status" enum:"ok,warning,failure"`
	Detail string `json:"detail"`
	// Fix is the single command or step that fixes it.
	Fix string `json:"mend,omitempty"`
}

// ProveRequest requests a proof of the limits on a task's GPU memory.
type ProveRequest struct {
	Image string `json:"image" minLength:"1" doc:"an image on this machine; its own program does not run"`
}

// SpeedChange sets the speed of a simulated server.
type SpeedChange struct {
	Speed float64 `json:"speed" exclusiveMinimum:"0" maximum:"100000"`
}

// StopRequest stops a task.
type StopRequest struct {
	// Grace is the time in nanoseconds between the stop signal and the kill. 0 means the
	// default.
	Grace time.Duration `json:"grace,omitempty" minimum:"0"`
	// Now kills without a stop signal. Like a shorter grace period, it also applies to a
	// task that is already stopping.
	Now    bool   `json:"now,omitempty"`
	Reason string `json:"reason,omitempty" maxLength:"500"`
}

// NamespaceHeader is the header with the default namespace of tasks.
const NamespaceHeader = "Carma-Namespace"

// Me describes the caller as the daemon identified it.
type Me struct {
	User  string `json:"user"`
	UID   int    `json:"uid" doc:"of the daemon's machine; of a user of a cluster, a larger number that carma gives them"`
	Admin bool   `json:"admin"`
	// Cluster is set if the cluster identified the user, not the machine's kernel.
	Cluster   bool   `json:"cluster,omitempty" doc:"a user of the cluster, as their token tells"`
	Namespace string `json:"namespace,omitempty" doc:"of the tasks that name none; empty: a task must name one, or there are none"`
}

// UID returns the number that identifies the caller in the daemon.
func (c *Client) UID(ctx context.Context) (int, error) {
	if !c.remote {
		return os.Getuid(), nil
	}
	me, err := c.WhoAmI(ctx)
	return me.UID, err
}

// WhoAmI returns the caller as the daemon identified it.
func (c *Client) WhoAmI(ctx context.Context) (Me, error) { return GetMe.send(ctx, c, None{}) }
