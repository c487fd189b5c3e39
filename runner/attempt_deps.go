package runner

import (
	"sync"
	"time"

	"carma/containers"
	"carma/mapper/model"
	"carma/runner/clock"
	"carma/runner/console"
	"carma/runner/containerfiles"
	"carma/runner/deviceaccess"
	"carma/runner/energy"
	"carma/runner/engine"
	"carma/runner/gpu"
	"carma/runner/helpers"
	"carma/runner/hostenv"
	"carma/runner/imagelookup"
	"carma/runner/inventory"
	"carma/runner/limiter"
	"carma/runner/loop"
	"carma/runner/machine"
	"carma/runner/monitor"
	"carma/runner/ports"
	"carma/runner/processes"
	"carma/runner/pull"
	"carma/runner/record"
	"carma/runner/sharing"
	"carma/runner/storedoutput"
	"carma/runner/suspend/support"
	"carma/runner/tasklog"
	"carma/runner/throughput"
	"carma/runner/usermounts"

	"github.com/rs/zerolog"
)

// attemptDeps are the parts and settings that all attempts of a daemon share.
type attemptDeps struct {
	Driver     containers.Driver
	Engine     *engine.Health
	Source     gpu.Source
	Clock      *clock.Clock
	Log        zerolog.Logger
	Logs       *tasklog.Store
	Loop       *loop.Loop
	Records    *record.Store
	Monitor    *monitor.Monitor
	Energy     *energy.Accounts
	GPUs       *inventory.GPUs
	Attachment *inventory.Attachment
	Access     *deviceaccess.Watcher
	Processes  *processes.Index
	Ports      *ports.Book
	Memory     *machine.Memory // of the machine
	Limiter    *limiter.Limiter
	Sharing    *sharing.State
	Puller     *pull.Puller
	Images     *imagelookup.Lookup
	Mounts     *usermounts.Opener
	Host       *hostenv.Environment   // of tasks without an image
	Places     *containerfiles.Places // the files of containers
	Helpers    *helpers.Manager
	Consoles   *console.Registry
	Followers  *throughput.Followers
	Output     *storedoutput.Health
	// Reconciled returns a channel that is closed when no container of an unknown attempt
	// is left.
	Reconciled func() <-chan struct{}
	// Running counts the goroutines of attempts.
	Running *sync.WaitGroup
	Daemon  attemptDaemon

	Instance    string // labels the containers of the data folder
	DataDir     string
	Init        string
	Attach      containers.Attach
	NearCPUs    bool
	SampleEvery time.Duration
	Suspending  *support.Options // nil if tasks are not suspended
	// Devices returns what every container needs to reach the GPUs, or is nil.
	Devices func(model.TaskID, int) ([]containers.Mount, []string)
	// Owner returns the task of a process, or is nil if Processes knows it.
	Owner func(pid int) (task model.TaskID, attempt int, ok bool)
}

// attemptDaemon answers what an attempt asks its daemon.
type attemptDaemon interface {
	// Bounds returns the bounds in force on tasks' use of the machine.
	Bounds() machine.Bounds
	// OOMTexts returns the texts in force that mean that GPU memory ran out.
	OOMTexts() []string
	// Grace returns the time that a task gets between the stop signal and the kill.
	Grace(rec *record.Record) time.Duration
	// Options returns the container options of a task.
	Options(rec *record.Record) (containers.ContainerOptions, error)
}

// setAttemptDeps sets what the attempts share.
func (r *Runner) setAttemptDeps() {
	r.attemptDeps = &attemptDeps{
		Driver: r.Driver, Engine: r.engine, Source: r.GPUs, Clock: r.Clock, Log: r.Log, Logs: r.Logs,
		Loop: r.loop, Records: r.records, Monitor: r.monitor, Energy: r.energy,
		GPUs: r.gpus, Attachment: r.attaching, Access: r.access, Processes: r.owners, Ports: r.ports, Memory: r.hostMem,
		Limiter: r.limiter, Sharing: r.sharing, Puller: r.pull, Images: r.images, Mounts: r.userMounts, Host: r.host, Places: r.places, Helpers: r.helpers,
		Consoles: r.consoles, Followers: r.followers, Output: r.keeping,
		Reconciled: r.reconciler.Done, Running: &r.attempts, Daemon: attemptParts{r},
		Instance: r.instance, DataDir: r.opt.DataDir, Attach: r.opt.Attach, NearCPUs: r.opt.NearCPUs, Init: r.opt.Init,
		SampleEvery: r.opt.SampleEvery, Suspending: r.opt.Suspending, Devices: r.opt.Devices, Owner: r.opt.Owner,
	}
}

// attemptParts implements [attemptDaemon].
type attemptParts struct{ r *Runner }

func (p attemptParts) Bounds() machine.Bounds { return p.r.live().Bounds }

func (p attemptParts) OOMTexts() []string { return p.r.live().OOMTexts }

func (p attemptParts) Grace(rec *record.Record) time.Duration { return p.r.grace(rec) }

func (p attemptParts) Options(rec *record.Record) (containers.ContainerOptions, error) {
	return p.r.containerOptions(p.r.users(rec.UID, rec.GID), rec.Submit)
}
