package api

import (
	"strings"
	"time"
)

// Task is a task as shown to users.
type Task struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
	User string `json:"user"`
	UID  int    `json:"uid"`
	GID  int    `json:"gid"`
	// Group is the name of the tasks submitted together with it.
	Group  string `json:"group,omitempty"`
	Image  string `json:"image"`
	Submit Submit `json:"submit" doc:"the request as it was made"`
	// EnvHidden is set if the caller may not see the values of its environment, which are
	// *** in Submit.
	EnvHidden bool `json:"env_hidden,omitempty" doc:"the values of its environment are not for the caller"`
	// GPUCount is the number of GPUs on which it runs.
	GPUCount int    `json:"gpu_count"`
	Phase    string `json:"phase" enum:"estimating,held,queued,recovering,launching,running,suspending,suspended,resuming,stopping,succeeded,failed,cancelled"`
	// Priority is the present priority.
	Priority string `json:"priority,omitempty" enum:"low,normal,high"`
	// Position is the position in the order of the queues, from 1, or 0 if it is in none.
	Position int `json:"position,omitempty"`
	// Waits is the reason in one line, while it is in a queue, held or probed.
	Waits     string   `json:"waits,omitempty"`
	WaitsCode string   `json:"waits_code,omitempty" doc:"the code of that reason"`
	Estimate  Estimate `json:"estimate"`
	// Need is the memory per GPU in bytes that its next launch allocates, or that its
	// present one has allocated, or 0 for whole GPUs.
	Need      int64     `json:"need"`
	Alone     bool      `json:"alone,omitempty" doc:"it has, or waits for, GPUs of its own"`
	Submitted time.Time `json:"submitted"`
	// Started is the start of the latest attempt, or zero before it.
	Started  time.Time `json:"started,omitzero"`
	Ended    time.Time `json:"ended,omitzero"`
	Attempts []Attempt `json:"attempts,omitempty"`
	// EnergyJ is the sum over its attempts.
	EnergyJ float64 `json:"energy_j,omitempty" doc:"joules: its share of what its GPUs have used while it ran, over all attempts; 0: nothing, or not known"`
	// Ports are its open ports while it runs.
	Ports []OpenPort `json:"ports,omitempty"`
	// Progress is the progress of the running attempt.
	Progress *Progress `json:"progress,omitempty"`
	// Suspension is set while it is suspending, suspended or resuming.
	Suspension *Suspension `json:"suspension,omitempty"`
	// Idle is set while it runs and has done nothing for a while.
	Idle *Idle `json:"idle,omitempty"`
	// Undelivered is set only for its owner and administrators, and only in requests for one
	// task.
	Undelivered []string `json:"undelivered,omitempty" doc:"messages about it that could not be delivered, and why; only for its owner and administrators, not in lists"`
	// Preallocates is set if it seems to have allocated most of a card at its start,
	// regardless of its need. It is not in listings.
	Preallocates bool `json:"preallocates,omitempty" doc:"its latest attempt took most of a card within two samples, and has not changed since; not in listings"`
	// Takes is its program, if the program by design takes a share of a GPU.
	Takes *Takes `json:"takes,omitempty"`
	// Says contains facts in the command line other than the training.
	Says *Says `json:"says,omitempty" doc:"what its command line says beside its training"`
	// Params and Trainable are the numbers of parameters of its model according to its
	// output, or 0.
	Params    float64 `json:"parameters,omitempty" doc:"parameters of its model, as its output named them"`
	Trainable float64 `json:"trainable_parameters,omitempty" doc:"those that it trains, as its output named them"`
	// ExitCode is set if the phase is final and the task has run.
	ExitCode *int   `json:"exit_code,omitempty"`
	Reason   string `json:"reason,omitempty" doc:"why it failed, was cancelled or runs again"`
	// ReasonCode is for programs: it stays the same when the text changes.
	ReasonCode string `json:"reason_code,omitempty" doc:"the code of that reason: gpu-oom, time-limit, program, ..."`
}

// Takes is a program that by design takes a share of a GPU.
type Takes struct {
	Program string `json:"program" doc:"vLLM, SGLang, TGI, Triton, llama.cpp, JAX or TensorFlow"`
	By      string `json:"by" doc:"what it was recognised by"`
	// Share is the part of a GPU's whole memory, or 0 if unknown.
	Share float64 `json:"share,omitempty"`
	From  string  `json:"from,omitempty" doc:"where the share comes from"`
	// Sets is the flag or the variable that carma sets from the declared memory, or empty.
	Sets string `json:"sets,omitempty"`
	Note string `json:"note,omitempty"`
}

// Says contains findings from the command line of a task.
type Says struct {
	GPUs        string `json:"gpus,omitempty" doc:"the words that its number of GPUs was taken from"`
	Resume      string `json:"resume,omitempty" doc:"the words that say what it resumes from"`
	Checkpoints string `json:"checkpoints,omitempty" doc:"the words that say where it saves checkpoints"`
	Unbuffered  bool   `json:"unbuffered,omitempty" doc:"carma sets PYTHONUNBUFFERED=1 for it, as neither it nor its image does"`
}

// Idle describes a running task that does nothing: its GPUs are idle, and nobody types in
// its terminal.
type Idle struct {
	Since time.Time `json:"since"`
	// Ends is the time at which it will be stopped for being idle, or zero if it will not be
	// stopped or has not been warned yet.
	Ends time.Time `json:"ends,omitzero" doc:"when it will be stopped for that"`
	// Unused is set if it has never had memory on its GPUs.
	Unused bool `json:"unused,omitempty" doc:"it has never had memory on its GPUs"`
}

// Finished reports whether the task's phase is final.
func (t *Task) Finished() bool {
	return t.Phase == "succeeded" || t.Phase == "failed" || t.Phase == "cancelled"
}

// Attempt is one run of a task.
type Attempt struct {
	N int `json:"n"`
	// Starts is the number of consecutive failed starts that this attempt stands for, none
	// of them the task's fault; N is the number of the last. 0 means one.
	Starts    int       `json:"starts,omitempty"`
	Container string    `json:"container" doc:"container name"`
	GPUs      []GPURef  `json:"gpus"`
	Grant     int64     `json:"grant" doc:"bytes booked on each GPU"`
	Launched  time.Time `json:"launched"`
	Started   time.Time `json:"started,omitzero"`
	Ended     time.Time `json:"ended,omitzero"`
	// Suspended is the time for which it was suspended, up to now.
	Suspended time.Duration `json:"suspended,omitempty" doc:"nanoseconds for which it was suspended, up to now"`
	// Leaves is set if its program vacates its GPUs on request.
	Leaves bool `json:"leaves,omitempty" doc:"its program leaves its GPUs by itself when it is asked to"`
	// Devices is the reason why it can no longer open its GPUs, or empty.
	Devices   string `json:"devices,omitempty" doc:"why its programs can no longer open its GPUs; empty: they can, or that is not known"`
	Outcome   string `json:"outcome,omitempty" doc:"ok, program, gpu-oom, suspected-gpu-oom, host-oom, infrastructure, evicted, mps-fault, cannot-start or stopped; empty while it runs"`
	ExitCode  int    `json:"exit_code"`
	Peak      int64  `json:"peak,omitempty" doc:"highest memory seen in use on one GPU, bytes"`
	Untouched bool   `json:"untouched,omitempty" doc:"it was measured that it had no memory on its GPUs; without this and without peak it is not known"`
	// Host is the share of the machine allocated to it, or zero.
	Host HostShare `json:"host,omitzero"`
	// EnergyJ is its share of its GPUs' energy use while it ran.
	EnergyJ   float64 `json:"energy_j,omitempty" doc:"joules: its share of what its GPUs have used while it ran; 0: nothing, or not known"`
	Blameless bool    `json:"blameless,omitempty"`
	Message   string  `json:"message,omitempty"`
	// Remark is an additional note for people about the outcome.
	Remark string `json:"remark,omitempty" doc:"what to know beside the outcome, such as an error in the output of a task that ended with 0"`
	// Witnesses lists the observations from which the outcome was concluded.
	Witnesses []Witness `json:"witnesses,omitempty" doc:"what the outcome was concluded from, the deciding ones first"`
	// Reason is the reason why the task ran again after it.
	Reason     string `json:"reason,omitempty" doc:"why the task ran again after this attempt"`
	ReasonCode string `json:"reason_code,omitempty" doc:"the code of that reason"`
	// Curve is its memory use over time; not in listings.
	Curve []CurvePoint `json:"curve,omitempty" doc:"memory in use over time, on the GPU where it uses most; not in listings"`
}

// Witness is one observation about how an attempt ended.
type Witness struct {
	Source   string `json:"source" doc:"output, exit, kernel, engine, gpu-memory, gpu, device or peers"`
	Says     string `json:"says,omitempty" doc:"the outcome that it speaks for, not-gpu-oom, or empty"`
	Strength string `json:"strength,omitempty" doc:"strong, words, hint or weak"`
	Rule     string `json:"rule,omitempty" doc:"the rule that matched a line of output"`
	Text     string `json:"text,omitempty" doc:"what was observed; of an output the line, for those who may read it"`
}

// CurvePoint is the memory in use from one instant to the next.
type CurvePoint struct {
	At   time.Time `json:"at"`
	Used int64     `json:"used" doc:"bytes"`
}

// HostShare is the share of the machine allocated to an attempt. Memory is in bytes.
type HostShare struct {
	Memory int64   `json:"memory" doc:"host memory booked"`
	Limit  int64   `json:"limit,omitempty" doc:"the most that it may use"`
	CPUs   float64 `json:"cpus,omitempty" doc:"processors booked"`
	Weight float64 `json:"weight,omitempty" doc:"the processors that it has a right to where they are short"`
	Peak   int64   `json:"peak,omitempty" doc:"highest host memory seen in use, without page cache"`
}

// LogLine is one line of a task's output, or a notice from carma about it.
type LogLine struct {
	At      time.Time `json:"at"`
	Attempt int       `json:"attempt"`
	// Stream is stdout, stderr, or carma for notices (relaunched, output dropped).
	Stream  string `json:"stream" enum:"stdout,stderr,carma"`
	Line    string `json:"line"`
	Partial bool   `json:"partial,omitempty" doc:"the line goes on in the next event"`
	// Notice is the subject of a notice that all waiting tasks get in the same form.
	Notice string `json:"notice,omitempty"`
}

// OpenPort is the address of a port of a running task.
type OpenPort struct {
	Port    string `json:"port" doc:"of the container, like 8888/tcp"`
	Address string `json:"address" doc:"on this machine, like 127.0.0.1:49153"`
}

// URL returns the address as a URL for browsers, if it is a TCP port.
func (p OpenPort) URL() string {
	if strings.HasSuffix(p.Port, "/tcp") {
		return "http://" + p.Address
	}
	return p.Address
}

// Why is the answer to "why is it waiting" (or where it runs, or how it ended).
type Why struct {
	Task     int64  `json:"task"`
	Phase    string `json:"phase"`
	Position int    `json:"position,omitempty"`
	Queue    string `json:"queue,omitempty" doc:"main or recovery"`
	// Summary is the single deciding reason, a sentence.
	Summary    string   `json:"summary"`
	ReasonCode string   `json:"reason_code,omitempty" doc:"the code of that reason"`
	GPUs       []WhyGPU `json:"gpus,omitempty"`
	// Start is the expected start of a pending task, or nil if unknown.
	Start *Start `json:"start,omitempty"`
	// Priority and Account are set for an unfinished task.
	Priority string    `json:"priority,omitempty"`
	Account  *Account  `json:"account,omitempty" doc:"what its user has, and may have"`
	Now      time.Time `json:"now"`
}

// Account is the usage and quota of one user, or of all users of a group. A quota of 0
// means no quota.
type Account struct {
	User        string  `json:"user,omitempty"`
	Group       string  `json:"group,omitempty" doc:"in place of a user"`
	Tasks       int     `json:"tasks" doc:"with GPUs"`
	GPUs        int     `json:"gpus" doc:"counted for each task"`
	Memory      int64   `json:"memory" doc:"bytes booked"`
	QuotaTasks  int     `json:"quota_tasks,omitempty"`
	QuotaGPUs   int     `json:"quota_gpus,omitempty"`
	QuotaMemory int64   `json:"quota_memory,omitempty"`
	Fair        bool    `json:"fair,omitempty" doc:"users take turns"`
	Used        float64 `json:"used" doc:"GPU-seconds, older ones less"`
	Ahead       int     `json:"ahead,omitempty" doc:"users with waiting tasks who go first in the order fair"`
	Waiting     int     `json:"waiting,omitempty" doc:"tasks in the queue"`
	Weight      float64 `json:"weight,omitempty" doc:"its right in the order fair; absent of a group whose users take turns by themselves"`
	Share       float64 `json:"share,omitempty" doc:"of the GPUs, 0 to 1, among all who have tasks now; absent: it has none, or the order is another"`
}

// WhyGPU is the reason why one GPU was rejected, or shows that it fits.
type WhyGPU struct {
	GPURef
	Fits bool   `json:"fits"`
	Rule string `json:"rule,omitempty" doc:"the precondition that rejected it: memory, smact, warm-up, ..."`
	Text string `json:"text" doc:"what goes after the name of the GPU"`
}
