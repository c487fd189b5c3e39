// Package api is what travels over carma's unix socket: the request and
// answer types, the paths, and the client that the command line uses. The
// server side is in package runner; its OpenAPI document is generated from
// these types and served at /openapi.json.
//
// All times are the daemon's: on a simulated server that runs N times faster
// than the clock, they are simulated times. Info.Now is the daemon's now.
package api

import "time"

// Submit asks for a task. It is the one type of what a user asks for: flags,
// task files, Compose files, image labels and the API are decoded into it.
// Memory is in bytes, time in nanoseconds; a zero value asks for nothing, and is
// the image's, the daemon's or the engine's to say. A field with help is one
// that a text can say; see [Field].
type Submit struct {
	Image      string   `json:"image" minLength:"1" maxLength:"4096" doc:"image reference, as docker run takes it"`
	Command    []string `json:"command,omitempty" doc:"replaces the image's command"`
	Entrypoint []string `json:"entrypoint,omitempty" doc:"replaces the image's entrypoint; [\"\"] clears it"`
	Env        []string `json:"env,omitempty" doc:"KEY=value"`
	Mounts     []Mount  `json:"mounts,omitempty"`
	// User is for root only; the tasks of others run as themselves.
	User string `json:"user,omitempty" maxLength:"200" doc:"user or uid[:gid] in the container; root's tasks only; empty: the image's"`
	// Labels are the user's own, for finding tasks again.
	Labels map[string]string `json:"labels,omitempty"`

	// What its memory is estimated from.
	EstModel  string `json:"est_model,omitempty" maxLength:"200" label:"true" value:"model" help:"estimate its memory as that of this model or workload" doc:"model name for the memory estimate"`
	BatchSize int    `json:"batch_size,omitempty" minimum:"0" label:"true" help:"batch size, for the estimate"`
	Params    int64  `json:"params,omitempty" minimum:"0" unit:"parameters" help:"parameters of a model that carma does not know, for example 25M" doc:"parameters of a model that carma does not know; needs batch_size and family"`
	Family    string `json:"family,omitempty" enum:"mlp,cnn,transformer" help:"its family: mlp, cnn, transformer" doc:"family of that model"`
	Input     int64  `json:"input,omitempty" minimum:"0" unit:"shape" help:"shape of one sample of it, for example 3x224x224" doc:"elements of one sample of it; 0: not known"`
	Layers    int    `json:"layers,omitempty" minimum:"0" help:"its convolutions and linear layers" doc:"its convolutions and linear layers; 0: not known"`
	// Estimator is for files of older versions, which had a choice.
	Estimator string `json:"estimator,omitempty" maxLength:"200" words:"carma" help:"the estimator that memory is booked by" doc:"carma, or empty: the estimator that memory is booked by; older programs took others"`
	// Probe runs its first steps on the CPU before it is queued, to see what
	// it trains.
	Probe bool  `json:"probe,omitempty" help:"run its first steps on the CPU first, to see what memory it needs"`
	Mem   int64 `json:"mem,omitempty" minimum:"0" unit:"memory" label:"true" help:"peak GPU memory on each GPU; wins over an estimate" doc:"declared peak memory per GPU in bytes; 0: estimate it"`

	// When and where it runs.
	GPUs      int    `json:"gpus,omitempty" minimum:"0" label:"true" help:"number of GPUs (default: what the image says, else 1)" doc:"number of GPUs; 0: the image's carma.gpus label, else 1"`
	Exclusive bool   `json:"exclusive,omitempty" help:"share the GPUs with nobody"`
	Priority  string `json:"priority,omitempty" enum:"low,normal,high" help:"low, normal or high (default normal)"`
	Retries   int    `json:"retries,omitempty" minimum:"0" least:"0" help:"how often to run it again when it fails" doc:"how often a program failure is run again"`
	// TimeLimit ends an attempt that runs longer; 0: none.
	TimeLimit time.Duration `json:"time_limit,omitempty" name:"time" minimum:"0" help:"end an attempt that runs longer"`
	// Slot is how long an attempt runs before it makes way for tasks that wait;
	// 0: as the daemon is set.
	Slot time.Duration `json:"slot,omitempty" minimum:"0" help:"after this time, stop it and queue it again if others wait"`
	// StopGrace is the time between the stop signal and the kill; 0: the
	// daemon's.
	StopGrace time.Duration `json:"stop_grace,omitempty" minimum:"0" help:"time between stop signal and kill (default: the daemon's)"`
	// Delay is the time from the submission until it may be queued.
	Delay time.Duration `json:"delay,omitempty" minimum:"0" help:"do not queue it before this time has passed"`

	Name string `json:"name,omitempty" value:"name" help:"name of the task (default: chosen)" doc:"unique among unfinished tasks; chosen by the daemon when empty"`

	// What the container has.
	WorkDir string  `json:"workdir,omitempty" maxLength:"4096" letter:"w" value:"folder" help:"working folder in the container"`
	ShmSize int64   `json:"shm_size,omitempty" minimum:"0" unit:"memory" help:"size of /dev/shm (default: the engine's, often 64M)" doc:"size of /dev/shm in bytes; 0: the engine's default"`
	HostMem int64   `json:"host_mem,omitempty" minimum:"0" unit:"memory" help:"host memory it may use, /dev/shm included (default: the daemon's)" doc:"host memory it may use, in bytes, with what is in /dev/shm; 0: the daemon's default"`
	CPUs    float64 `json:"cpus,omitempty" minimum:"0" value:"processors" help:"processors it may use, as 4 or 1.5 (default: the daemon's)" doc:"processors it may use; 0: the daemon's default"`
	Pids    int64   `json:"pids,omitempty" minimum:"0" value:"processes" help:"processes and threads it may have (default: the daemon's)" doc:"processes and threads it may have; 0: the daemon's default"`
	// Visibility is who may see its environment and output: its owner and
	// admins, or all.
	Visibility string `json:"visibility,omitempty" enum:"private,open" help:"who sees its environment and output: private (you and admins) or open (default: the daemon's)"`
	Pull       string `json:"pull,omitempty" enum:"missing,always,never" help:"fetch the image: missing, always or never (default: the daemon's)"`

	// After are tasks that must have come so far before it is queued.
	After []Dependency `json:"after,omitempty"`
	// Part names what it is within the tasks it is submitted with: those of one
	// part share a limit and can be waited for together.
	Part string `json:"part,omitempty" doc:"name within the submission; tasks of one part share the limit parallel"`
	// Parallel is how many tasks of its part may be queued or run at a time.
	Parallel int           `json:"parallel,omitempty" minimum:"0" help:"how many of an array or a sweep may run at a time" doc:"how many tasks of its part may be queued or run at a time; 0: no limit"`
	Array    *ArrayElement `json:"array,omitempty"`
}

// Mount is a bind mount of a host path into the container.
type Mount struct {
	Source   string `json:"source"`
	Target   string `json:"target"`
	ReadOnly bool   `json:"read_only,omitempty"`
}

// Submitted answers a submission. The task is journaled: it will not be lost.
type Submitted struct {
	ID       int64    `json:"id"`
	Name     string   `json:"name"`
	Warnings []string `json:"warnings,omitempty"`
}

// Estimate is a memory estimate and where it comes from.
type Estimate struct {
	// Memory is the upper bound per GPU in bytes that is booked; 0 when WholeGPU.
	Memory   int64  `json:"memory"`
	WholeGPU bool   `json:"whole_gpu,omitempty"`
	Method   string `json:"method" doc:"declared, catalogue or whole-gpu"`
	Detail   string `json:"detail,omitempty" doc:"one sentence for people"`
}

// Task is a task as users see it.
type Task struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
	User string `json:"user"`
	UID  int    `json:"uid"`
	GID  int    `json:"gid"`
	// Group is the name of the tasks it was submitted with.
	Group  string `json:"group,omitempty"`
	Image  string `json:"image"`
	Submit Submit `json:"submit" doc:"the request as it was made"`
	// GPUCount is the number of GPUs it runs on.
	GPUCount int    `json:"gpu_count"`
	Phase    string `json:"phase" enum:"estimating,held,queued,recovering,launching,running,stopping,succeeded,failed,cancelled"`
	// Position in the order of the queues, from 1; 0 when it is in none.
	Position int `json:"position,omitempty"`
	// Waits is the one-line reason while it is in a queue, held or probed.
	Waits     string   `json:"waits,omitempty"`
	WaitsCode string   `json:"waits_code,omitempty" doc:"the code of that reason"`
	Estimate  Estimate `json:"estimate"`
	// Need is the memory per GPU that its next launch books, or its current
	// one has booked, in bytes; 0 when it gets whole GPUs.
	Need      int64     `json:"need"`
	Alone     bool      `json:"alone,omitempty" doc:"it has, or waits for, GPUs of its own"`
	Submitted time.Time `json:"submitted"`
	// Started is the start of the latest attempt; zero: not started.
	Started  time.Time `json:"started,omitzero"`
	Ended    time.Time `json:"ended,omitzero"`
	Attempts []Attempt `json:"attempts,omitempty"`
	// ExitCode is set when the phase is final and the task has run.
	ExitCode *int   `json:"exit_code,omitempty"`
	Reason   string `json:"reason,omitempty" doc:"why it failed, was cancelled or runs again"`
	// ReasonCode is for programs: it stays when the words change.
	ReasonCode string `json:"reason_code,omitempty" doc:"the code of that reason: gpu-oom, time-limit, program, ..."`
}

// Finished reports whether the task's phase is final.
func (t *Task) Finished() bool {
	return t.Phase == "succeeded" || t.Phase == "failed" || t.Phase == "cancelled"
}

// Attempt is one run of a task.
type Attempt struct {
	N int `json:"n"`
	// Starts is how many starts in a row it stands for that failed for reasons
	// that are not the task's; it has the number of the last. 0: one.
	Starts    int       `json:"starts,omitempty"`
	Container string    `json:"container" doc:"container name"`
	GPUs      []GPURef  `json:"gpus"`
	Grant     int64     `json:"grant" doc:"bytes booked on each GPU"`
	Launched  time.Time `json:"launched"`
	Started   time.Time `json:"started,omitzero"`
	Ended     time.Time `json:"ended,omitzero"`
	Outcome   string    `json:"outcome,omitempty" doc:"ok, program, gpu-oom, host-oom, infrastructure, evicted, mps-fault, cannot-start or stopped; empty while it runs"`
	ExitCode  int       `json:"exit_code"`
	Peak      int64     `json:"peak,omitempty" doc:"highest memory seen in use on one GPU, bytes"`
	Blameless bool      `json:"blameless,omitempty"`
	Message   string    `json:"message,omitempty"`
	// Reason is why the task ran again after it.
	Reason     string `json:"reason,omitempty" doc:"why the task ran again after this attempt"`
	ReasonCode string `json:"reason_code,omitempty" doc:"the code of that reason"`
	// Curve is the memory it was seen to use; not in listings.
	Curve []CurvePoint `json:"curve,omitempty" doc:"memory in use over time, on the GPU where it uses most; not in listings"`
}

// CurvePoint is the memory in use from a moment on, until the next.
type CurvePoint struct {
	At   time.Time `json:"at"`
	Used int64     `json:"used" doc:"bytes"`
}

// GPURef names a GPU.
type GPURef struct {
	Index int    `json:"index"`
	UUID  string `json:"uuid"`
}

// GPU is the ledger's page for one GPU. Memory is in bytes.
type GPU struct {
	GPURef
	Model    string  `json:"model"`
	Capacity int64   `json:"capacity"`
	Reserved int64   `json:"reserved" doc:"sum of the grants of the tasks placed there"`
	Used     int64   `json:"used"`
	Foreign  int64   `json:"foreign" doc:"in use by processes that are not carma's"`
	Headroom int64   `json:"headroom" doc:"never booked"`
	SMACT    float64 `json:"smact" doc:"SM activity, 0 to 1"`
	SMOCC    float64 `json:"smocc"`
	DRAMA    float64 `json:"drama"`
	PowerW   float64 `json:"power_w"`
	EnergyJ  float64 `json:"energy_j"`
	Parent   string  `json:"parent,omitempty" doc:"UUID of the card that this MIG instance is a part of"`
	Metrics  string  `json:"metrics,omitempty" doc:"where smact, smocc and drama come from: gpm, dcgm-exporter, utilization or none; empty on simulated GPUs"`
	Coarse   bool    `json:"coarse,omitempty" doc:"they are bounds from the share of time any kernel ran"`

	TemperatureC float64  `json:"temperature_c,omitempty"`
	ECCErrors    uint64   `json:"ecc_errors,omitempty" doc:"uncorrectable memory errors since the driver was loaded"`
	Warnings     []string `json:"warnings,omitempty"`
	Fault        string   `json:"fault,omitempty" doc:"why it gets no tasks"`
	// HeldFor is the task this GPU is kept free for; 0: none.
	HeldFor int64      `json:"held_for,omitempty"`
	Tasks   []Resident `json:"tasks"`
}

// Resident is one task's place on a GPU. Memory is in bytes.
type Resident struct {
	Task  int64  `json:"task"`
	Name  string `json:"name"`
	Grant int64  `json:"grant"`
	Used  int64  `json:"used"`
	Peak  int64  `json:"peak"`
	Alone bool   `json:"alone,omitempty"`
}

// Why answers "why is it waiting" (or where it runs, or how it ended).
type Why struct {
	Task     int64  `json:"task"`
	Phase    string `json:"phase"`
	Position int    `json:"position,omitempty"`
	Queue    string `json:"queue,omitempty" doc:"main or recovery"`
	// Summary is the one binding reason, a sentence.
	Summary    string    `json:"summary"`
	ReasonCode string    `json:"reason_code,omitempty" doc:"the code of that reason"`
	GPUs       []WhyGPU  `json:"gpus,omitempty"`
	Now        time.Time `json:"now"`
}

// WhyGPU is why one GPU was turned down, or that it fits.
type WhyGPU struct {
	GPURef
	Fits bool   `json:"fits"`
	Rule string `json:"rule,omitempty" doc:"the precondition that rejected it: memory, smact, warm-up, ..."`
	Text string `json:"text" doc:"what goes after the name of the GPU"`
}

// LogLine is one line of a task's output, or a notice of carma's about it.
type LogLine struct {
	At      time.Time `json:"at"`
	Attempt int       `json:"attempt"`
	// Stream: stdout, stderr, or carma for notices (relaunched, output dropped).
	Stream  string `json:"stream" enum:"stdout,stderr,carma"`
	Line    string `json:"line"`
	Partial bool   `json:"partial,omitempty" doc:"the line goes on in the next event"`
	// Notice names what a notice is about where all who wait are told the same.
	Notice string `json:"notice,omitempty"`
}

// Info describes the daemon.
type Info struct {
	Version string    `json:"version"`
	Now     time.Time `json:"now"`
	// Speed is simulated time per clock time; 1 on real GPUs.
	Speed   float64 `json:"speed"`
	PID     int     `json:"pid"`
	DataDir string  `json:"data_dir"`
	Driver  string  `json:"driver"`
	Source  string  `json:"source" doc:"where the GPUs come from: sim:dgx-station-a100"`
	// Simulated: the GPUs are not real.
	Simulated bool   `json:"simulated"`
	Policy    string `json:"policy"`
	// Engine is empty while the container engine does not answer.
	Engine     string `json:"engine,omitempty"`
	EngineDown string `json:"engine_down,omitempty" doc:"why the engine cannot be used now"`
	Queued     int    `json:"queued"`
	Running    int    `json:"running"`
	// Held are unfinished tasks that are in no queue yet.
	Held int `json:"held"`
	// Output is what is kept of the tasks' output.
	Output *Output `json:"output,omitempty"`
	// Trouble is what keeps tasks from starting now, the widest first.
	Trouble []Trouble `json:"trouble,omitempty"`
	// Draining: nothing is started any more; the daemon ends with its last
	// running task.
	Draining bool `json:"draining,omitempty"`
}

// Output is how much room the tasks' output takes, and how much it may.
type Output struct {
	Dir   string           `json:"dir"`
	Bytes int64            `json:"bytes" doc:"what it takes; after a start that is counted in the background"`
	Total int64            `json:"total" doc:"the most it may take"`
	User  int64            `json:"user" doc:"the most of one user"`
	Task  int64            `json:"task" doc:"the most of one task"`
	Free  int64            `json:"free" doc:"what it leaves free on its disk"`
	Users map[string]int64 `json:"users,omitempty"`
	Tasks int              `json:"tasks" doc:"tasks with output"`
	// Finished are the finished tasks that are kept.
	Finished int    `json:"finished"`
	Trouble  string `json:"trouble,omitempty" doc:"why output cannot be kept now"`
}

// Trouble is something that keeps tasks from starting for no reason of their
// own.
type Trouble struct {
	Scope string `json:"scope" enum:"daemon,engine,gpu"`
	// GPU is the index of the one concerned, for scope gpu.
	GPU    *int   `json:"gpu,omitempty"`
	Code   string `json:"code,omitempty"`
	Text   string `json:"text" doc:"what it is, a clause"`
	Cause  string `json:"cause,omitempty"`
	Remedy string `json:"remedy,omitempty"`
	// Since is when it was first seen, Failures how many starts have failed in a
	// row, NextTest when the next task is started as a test.
	Since    time.Time `json:"since,omitzero"`
	Failures int       `json:"failures,omitempty"`
	NextTest time.Time `json:"next_test,omitzero"`
}

// String is a sentence about it, with what mends it.
func (t Trouble) String() string {
	if t.Remedy == "" {
		return t.Text
	}
	return t.Text + "; to mend it: " + t.Remedy
}

// Check is one line of doctor's findings.
type Check struct {
	Name   string `json:"name"`
	Status string `json:"status" enum:"ok,warning,failure"`
	Detail string `json:"detail"`
	// Mend is the one command or step that repairs it.
	Mend string `json:"mend,omitempty"`
}

// ProveRequest asks for a proof of what limits a task's GPU memory.
type ProveRequest struct {
	Image string `json:"image" minLength:"1" doc:"an image on this machine; its own program does not run"`
}

// SpeedChange sets the speed of a simulated server.
type SpeedChange struct {
	Speed float64 `json:"speed" exclusiveMinimum:"0" maximum:"100000"`
}

// StopRequest stops a task.
type StopRequest struct {
	// Grace in nanoseconds between the stop signal and the kill; 0: default.
	Grace time.Duration `json:"grace,omitempty" minimum:"0"`
	// Now kills without a stop signal. Like a shorter grace it also counts for a
	// task that is stopping already.
	Now    bool   `json:"now,omitempty"`
	Reason string `json:"reason,omitempty" maxLength:"500"`
}
