package runner

import (
	"time"

	"carma/containers"
	"carma/estimator"
	"carma/mapper"
	"carma/runner/gpu"
	"carma/runner/journal"
	"carma/runner/tasklog"

	"github.com/rs/zerolog"
)

// Estimator predicts at submission what a task will use of its GPUs.
type Estimator interface {
	// Estimate predicts its memory.
	Estimate(estimator.Query) (estimator.Estimate, error)
	// Expect predicts its activity and run time; zero: nothing is known.
	Expect(estimator.Query) mapper.Expected
}

// Options are the daemon's settings.
type Options struct {
	Version string
	DataDir string
	Mapper  mapper.Options
	// Attach is how containers get their GPUs; empty: chosen for the engine and
	// the machine.
	Attach containers.Attach
	// NearCPUs: a task on GPUs of one NUMA node runs on that node's processors only.
	NearCPUs bool
	// Devices adds what every container needs to reach the GPUs; nil: nothing.
	Devices func(mapper.TaskID, int) ([]containers.Mount, []string)
	// DeviceAccess checks whether containers can open their GPUs; nil: that is not
	// checked, as with simulated GPUs and in a cluster.
	DeviceAccess DeviceChecker
	// Boot names the machine's boot; empty: the kernel is asked.
	Boot string
	// Speed is how fast a simulated server's time runs from the start on.
	Speed float64
	// SetSpeed is called when the speed of a simulated server changes; nil
	// where the GPUs are real.
	SetSpeed func(float64)
	// SampleEvery is the time between two samples, in the daemon's time.
	SampleEvery time.Duration
	// Activity is the way to make one score of the readings in a window:
	// ActivityMean (empty) or ActivityRisk.
	Activity string
	// Pull: missing, always or never.
	Pull string
	// StopGrace is the time between a stop signal and the kill.
	StopGrace time.Duration
	// AllowedMounts are folders that tasks may mount; ~ is the submitter's home.
	AllowedMounts []string
	// Fittings are the devices and limits that tasks may have.
	Fittings Fittings
	// MountDir is where the engine finds what users mount (mounts.DefaultDir).
	// Empty: it gets the paths that were checked, and follows later changes of
	// them.
	MountDir string
	// HostTasks is who may run tasks without an image: all, admins, none (empty),
	// or a group. HostFolders are the machine's folders that these see.
	HostTasks   string
	HostFolders []string
	// Open: everybody sees the environment and output of tasks whose submitters
	// do not set a visibility.
	Open bool
	// OOMTexts are texts in errors of programs that mean that GPU memory ran out, besides
	// those that carma knows.
	OOMTexts []string
	// Bounds are what one task may use of the machine.
	Bounds Bounds
	// PerUser is what one user may have of the daemon.
	PerUser PerUser
	// AdminGroup names the group whose members are administrators, see package rights.
	// Empty: only root and the daemon's account are.
	AdminGroup string
	// ClusterAdmins are the users of a cluster who may do what admins may, and, with @
	// before them, groups of it.
	ClusterAdmins []string
	// MPS is how GPUs are shared; nil: by time slices, as the driver does.
	MPS *MPS
	// NoMPS is why MPS is nil though it was wanted; empty: it was not.
	NoMPS string
	// Limits are how the GPU memory of tasks is limited, beside MPS.
	Limits Limits
	// Suspending is how tasks are taken off their GPUs; nil: they are not.
	Suspending *Suspending
	// NoSuspending is why Suspending is nil, where another driver would not help;
	// empty: there is no such reason.
	NoSuspending string
	// Closed: containers have no network. Then those of suites lead nowhere else.
	Closed bool
	// Calibrate makes the machine's own environment; nil: none is made.
	Calibrate Calibrating
	// Init is the path of the program carma-init, which a proof runs; empty: it
	// is missing.
	Init string
	// Owner tells the task of a process of this machine; nil: its control groups
	// tell.
	Owner func(pid int) (task mapper.TaskID, attempt int, ok bool)
	// Keep bounds how many finished tasks are kept, and how long.
	Keep Keep
	// Notify is what is set about messages.
	Notify Notifying
	// Probing is when and how tasks are probed.
	Probing Probing
}

// Deps are the parts a Runner works with. It does not close them.
type Deps struct {
	Journal   *journal.Journal
	Logs      *tasklog.Store
	Driver    containers.Driver
	GPUs      gpu.Source
	Estimator Estimator
	Clock     *Clock
	Log       zerolog.Logger
}
