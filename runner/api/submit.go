package api

import (
	"encoding/json"
	"time"

	"carma/configs/models"
	"carma/containers"
)

// ContainerOptions are the options that a task's container gets as they are submitted.
type ContainerOptions = containers.ContainerOptions

// Submit is the request for a task, and the only type for it: flags, task files, Compose
// files, image labels and the API are decoded into it. Memory is in bytes, time in
// nanoseconds. A zero value requests nothing: the image, the daemon or the engine
// decides. A field with help can be set from a text; see [Field].
type Submit struct {
	Image      string   `json:"image,omitempty" maxLength:"4096" doc:"image reference, as docker run takes it; empty with conda, venv or host"`
	Command    []string `json:"command,omitempty" doc:"replaces the image's command"`
	Entrypoint []string `json:"entrypoint,omitempty" doc:"replaces the image's entrypoint; [\"\"] clears it"`
	Env        []string `json:"env,omitempty" doc:"KEY=value"`
	Mounts     []Mount  `json:"mounts,omitempty"`
	// User is for root and for users of a cluster, who give a number. The tasks of all other
	// users run as their submitter.
	User string `json:"user,omitempty" maxLength:"200" letter:"u" value:"user" help:"user in the container, a name or uid:gid: for root's tasks, and by number on a cluster (default: the image's; those of others run as themselves)" doc:"user or uid[:gid] in the container; of root's tasks, and by number of tasks on a cluster; empty: the image's. Those of others run as themselves"`
	// Instead of an image: the machine's own programs, alone or with the programs of an
	// environment on the machine. The command line also accepts names and relative paths.
	Conda string `json:"conda,omitempty" maxLength:"4096" value:"environment" help:"run in this conda environment of yours, by name or folder, without an image" doc:"folder of a conda environment on this machine, in place of an image"`
	Venv  string `json:"venv,omitempty" maxLength:"4096" value:"folder" help:"run in this Python virtual environment, without an image" doc:"folder of a virtual environment on this machine, in place of an image"`
	Host  bool   `json:"host,omitempty" help:"run the machine's own programs, without an image" doc:"run the machine's own programs, in place of an image"`
	// Labels are the user's own, to find tasks again.
	Labels map[string]string `json:"labels,omitempty"`

	// The inputs of its memory estimate.
	EstModel string `json:"est_model,omitempty" maxLength:"200" label:"true" value:"model" help:"estimate its memory as that of this model or workload: a name, a model of the hub, or a file that describes it (config.json, ONNX, summary, carma models)" doc:"model name for the memory estimate"`
	// Network describes the model, if the model was a file: the command line reads files,
	// the daemon reads none. See package described of estimator/networks.
	Network json.RawMessage `json:"network,omitempty" doc:"description of the model, in place of a known name: the object of a config.json of the transformers library, or of a model configuration of carma; or such an object as gzip in base64. Not in listings of tasks"`
	// Train contains settings of the training, by key; see [models.Settings]. Each of them
	// is a [Field].
	Train map[string]string `json:"train,omitempty" settings:"true" doc:"settings of the training whose memory is estimated, each a text: precision, seq, lora, optimizer, sharding, ... as carma run takes them, with _ for -"`
	// ReadSettings none omits Read.
	ReadSettings string `json:"read_settings,omitempty" enum:"command,none" help:"read settings of the training from the words of its program: command (default) or none"`
	// Read contains the training settings read from the program's command line. The
	// submission's own settings override them.
	Read      *Read  `json:"read,omitempty" doc:"what the command line of its program says of its training, as carma run reads it; it counts where the submission says nothing"`
	BatchSize int    `json:"batch_size,omitempty" minimum:"0" label:"true" help:"batch size that memory is estimated for; the task gets it as CARMA_BATCH_SIZE"`
	Params    int64  `json:"params,omitempty" minimum:"0" unit:"parameters" help:"parameters of a model that carma does not know, for example 25M" doc:"parameters of a model that carma does not know; needs batch_size and family"`
	Family    string `json:"family,omitempty" enum:"mlp,cnn,transformer" help:"family of a model that carma does not know: mlp, cnn, transformer" doc:"family of a model that carma does not know"`
	Input     int64  `json:"input,omitempty" minimum:"0" unit:"shape" help:"shape of one sample of a model that carma does not know, for example 3x224x224" doc:"elements of one sample of a model that carma does not know; 0: not known"`
	Layers    int    `json:"layers,omitempty" minimum:"0" help:"number of convolutions and linear layers of a model that carma does not know" doc:"number of convolutions and linear layers of a model that carma does not know; 0: not known"`
	// Estimator exists for files of older versions, in which it was a choice.
	Estimator string `json:"estimator,omitempty" maxLength:"200" words:"carma" help:"the estimator that memory is booked by" doc:"carma, or empty: the estimator that memory is booked by; older programs took others"`
	// Probe runs the program's first steps on the CPU before the task is queued, to find its
	// network.
	Probe bool  `json:"probe,omitempty" help:"first run its first steps on the CPU, to estimate its memory"`
	Mem   int64 `json:"mem,omitempty" minimum:"0" unit:"memory" label:"true" help:"peak memory on each GPU; used instead of an estimate" doc:"declared peak memory per GPU in bytes; 0: estimate it"`

	// GPUShare controls whether programs that by design take a share of a GPU are
	// recognised.
	GPUShare string `json:"gpu_share,omitempty" enum:"auto,off" help:"recognise programs like vLLM that take a share of a GPU by design, and book it: auto (default) or off"`

	// CommandCheck is the reaction to a command line that cannot work with the requested
	// GPUs.
	CommandCheck string `json:"command_check,omitempty" enum:"refuse,warn,off" help:"if its command line uses other GPUs than it asks for: refuse (default), warn, or off, which takes no number of GPUs from it either" doc:"a command line that cannot work with the GPUs that are asked for is refused (default), or warned of; off: its GPUs are not read from it"`

	// The conditions, time and place of its run.
	GPUs int `json:"gpus,omitempty" minimum:"-1" label:"true" unit:"GPUs" help:"number of GPUs, all, or device=0,1 for these; 0: none, it has host memory and processors alone (default: what its command line says, else the image, else 1)" doc:"number of GPUs; -1: all of the machine; 0: what its command line says, else the image's carma.gpus label, else 1, or none with no_gpu"`
	// NoGPU stands for the text 0 of the field above, because a 0 in GPUs requests nothing.
	NoGPU bool `json:"no_gpu,omitempty" doc:"it gets no GPU, only host memory and processors; gpus is 0 then"`
	// GPUIDs lists the GPUs of device= in the text of GPUs. If empty, carma chooses.
	GPUIDs    []string `json:"gpu_ids,omitempty" maxItems:"64" doc:"indexes or UUIDs of the GPUs that it goes to, at least as many as gpus; none: carma chooses"`
	Exclusive bool     `json:"exclusive,omitempty" help:"do not share its GPUs"`
	Priority  string   `json:"priority,omitempty" enum:"low,normal,high" help:"low, normal or high (default normal)"`
	Retries   int      `json:"retries,omitempty" minimum:"0" least:"0" help:"how often to run it again if its program fails" doc:"how often a program failure is run again"`
	// OOMTexts and OOMExits are the program's own texts and exit codes for exhausted GPU
	// memory, which carma cannot know.
	OOMTexts []string `json:"oom_texts,omitempty" maxItems:"16" maxLength:"200" name:"oom-text" unit:"oom text" value:"text" help:"text in an error of the program that means that GPU memory ran out; may be repeated"`
	OOMExits []string `json:"oom_exits,omitempty" maxItems:"16" name:"oom-exit" unit:"exit code" value:"code" help:"exit code of the program that means that GPU memory ran out; may be repeated"`
	// TimeLimit ends an attempt that runs longer. 0 means no limit.
	TimeLimit time.Duration `json:"time_limit,omitempty" name:"time" minimum:"0" help:"stop an attempt that runs longer than this"`
	// Slot is the run time after which pending tasks may preempt an attempt. 0 means the
	// daemon's setting.
	Slot time.Duration `json:"slot,omitempty" minimum:"0" help:"stop it after this time and queue it again, if others wait"`
	// StopGrace is the time between the stop signal and the kill. 0 means the daemon's
	// setting.
	StopGrace time.Duration `json:"stop_grace,omitempty" minimum:"0" help:"time between stop signal and kill (default: the daemon's)"`
	// Delay is the time from the submission after which it may be queued.
	Delay time.Duration `json:"delay,omitempty" minimum:"0" help:"do not queue it before this time has passed"`

	// The place in a cluster, and the identity there.
	Namespace      string `json:"namespace,omitempty" maxLength:"63" value:"namespace" help:"namespace of the cluster that it runs in (default: that of your kubeconfig)" doc:"namespace of the cluster that it runs in; empty: the caller's, as the header Carma-Namespace says; else a service account's own, or the daemon's for users of its machine"`
	ServiceAccount string `json:"service_account,omitempty" maxLength:"253" value:"account" help:"service account of the namespace that its program has (default: none)" doc:"service account of the namespace that its program has; empty: the namespace's default account, without its token"`

	// Account is the group to which its usage is charged, in addition to its user.
	Account string `json:"account,omitempty" maxLength:"200" value:"group" help:"unix group of yours that its use is counted for (default: your primary group)" doc:"unix group that its use is counted for; empty: its submitter's primary group"`

	Name string `json:"name,omitempty" value:"name" help:"name of the task (default: chosen)" doc:"unique among unfinished tasks; chosen by the daemon when empty"`

	// The settings of the container: options of docker run, then host memory and
	// processors, which are allocated too.
	ContainerOptions
	HostMem int64   `json:"host_mem,omitempty" minimum:"0" unit:"memory" letter:"m" help:"host memory it may use, /dev/shm included; booked for it (default: what earlier runs used, else its part)" doc:"host memory it may use, in bytes, with what is in /dev/shm; it is booked for it. 0: what earlier runs used is booked, else the part that goes with its GPUs, and it may use what nobody has booked"`
	CPUs    float64 `json:"cpus,omitempty" minimum:"0" value:"processors" help:"processors it may use, for example 4 or 1.5; booked for it (default: the daemon's)" doc:"processors it may use; they are booked for it. 0: the daemon's default, and none are booked but for a task without a GPU"`
	// The next two are allocated, if they are to differ from the limits.
	HostReserve int64   `json:"host_reserve,omitempty" minimum:"0" unit:"memory" help:"host memory booked for it (default: --host-mem, else what earlier runs used, else its part)" doc:"host memory that is booked for it, in bytes; 0: host_mem, else what earlier runs used, else the part that goes with its GPUs"`
	CPUsReserve float64 `json:"cpus_reserve,omitempty" minimum:"0" value:"processors" help:"processors booked for it, for example 4 or 1.5 (default: --cpus)" doc:"processors that are booked for it; 0: cpus"`
	// IdleStop is the idle time after which the task is stopped: no input in its terminal,
	// and no work on its GPUs. 0 means the daemon's setting, a negative value never.
	IdleStop time.Duration `json:"idle_stop,omitempty" unit:"time or 0" minimum:"-1" help:"stop it when nothing is typed and its GPUs do nothing for this time; 0: never" doc:"nanoseconds without input and GPU activity after which it is stopped; -1: never; 0: as the daemon is set"`
	// Visibility controls whether only its owner and admins, or all users, may see its
	// environment and output.
	Visibility string `json:"visibility,omitempty" enum:"private,open" help:"who sees its environment and output: private (you and admins) or open (default: the daemon's)"`
	Pull       string `json:"pull,omitempty" enum:"missing,always,never" help:"fetch the image: missing, always or never (default: the daemon's)"`

	// Notify overrides the settings of the user's channels. Each is read by [ParseNotify].
	Notify []string `json:"notify,omitempty" maxItems:"8" unit:"notify" value:"events[:channel]" help:"send messages of these events, for example finished,failed or failed:phone; all or none; may be repeated (default: as your channels say)" doc:"events of which messages are sent, EVENT[,EVENT][:CHANNEL], all or none; empty: as the user's channels say"`

	// After lists the dependencies for which it waits before it is queued.
	After []Dependency `json:"after,omitempty"`
	// Part is its part of the submission: the tasks of one part share a limit and can be
	// awaited together.
	Part string `json:"part,omitempty" doc:"name within the submission; tasks of one part share the limit parallel"`
	// Parallel is the largest number of tasks of its part that are queued or run at a time.
	Parallel int           `json:"parallel,omitempty" minimum:"0" unit:"tasks" help:"how many tasks of an array or a sweep may be queued or run at a time; a word is the training's, as --sharding" doc:"how many tasks of its part may be queued or run at a time; 0: no limit"`
	Array    *ArrayElement `json:"array,omitempty"`
}

// Read contains the training settings from a program's command line and the files that it
// names.
type Read struct {
	Model string            `json:"model,omitempty" maxLength:"200" doc:"known name of the model"`
	Batch int               `json:"batch_per_gpu,omitempty" minimum:"0" doc:"batch size of each GPU"`
	Train map[string]string `json:"train,omitempty" doc:"settings, as in the submission"`
	Said  string            `json:"said,omitempty" maxLength:"1000" doc:"all of this in words, for people"`
}

// Model returns the model name for the memory estimate, given or read, or "" if there is
// none.
func (s *Submit) Model() string {
	if s.EstModel == "" && s.Read != nil {
		return s.Read.Model
	}
	return s.EstModel
}

// Training returns the settings of its training: given settings override settings that were
// read. An error is a [models.Error].
func (s *Submit) Training() (models.Overrides, error) {
	if s.Read == nil {
		return models.FromTexts(s.Train)
	}
	return models.FromTexts(merged(s.Read.Train, s.Train))
}

// Mount is a bind mount of a host path into the container.
type Mount struct {
	Source   string `json:"source"`
	Target   string `json:"target"`
	ReadOnly bool   `json:"read_only,omitempty"`
}

// Submitted is the answer to a submission. The task is journaled: it will not be lost.
type Submitted struct {
	ID       int64    `json:"id"`
	Name     string   `json:"name"`
	Warnings []string `json:"warnings,omitempty"`
}

// Estimate is a memory estimate with its origin.
type Estimate struct {
	// Memory is the allocated upper bound per GPU in bytes, or 0 if WholeGPU is set.
	Memory   int64 `json:"memory"`
	WholeGPU bool  `json:"whole_gpu,omitempty"`
	// Point is the likeliest figure, Plain the likeliest figure before correction by earlier
	// runs on this machine.
	Point  int64  `json:"point,omitempty" doc:"the likeliest memory per GPU in bytes; 0: not known"`
	Plain  int64  `json:"plain,omitempty" doc:"the same before earlier runs on this machine corrected it; 0: no run measures it"`
	Method string `json:"method" doc:"declared, catalogue or whole-gpu"`
	Detail string `json:"detail,omitempty" doc:"one sentence for people"`
}
