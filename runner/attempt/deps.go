package attempt

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

// Deps are the parts and settings that all attempts of a daemon share.
type Deps struct {
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
	Running  *sync.WaitGroup
	Settings Settings

	Instance    string // labels the containers of the data folder
	DataDir     string
	Attach      containers.Attach
	NearCPUs    bool
	SampleEvery time.Duration
	Suspending  *support.Options // nil if tasks are not suspended
	// Devices returns what every container needs to reach the GPUs, or is nil.
	Devices func(model.TaskID, int) ([]containers.Mount, []string)
	// Owner returns the task of a process, or is nil if Processes knows it.
	Owner func(pid int) (task model.TaskID, attempt int, ok bool)
}

// Settings returns the settings in force.
type Settings interface {
	// Bounds returns the bounds in force on tasks' use of the machine.
	Bounds() machine.Bounds
	// OOMTexts returns the texts in force that mean that GPU memory ran out.
	OOMTexts() []string
	// Grace returns the time that a task gets between the stop signal and the kill.
	Grace(rec *record.Record) time.Duration
	// Options returns the container options of a task.
	Options(rec *record.Record) (containers.ContainerOptions, error)
}
