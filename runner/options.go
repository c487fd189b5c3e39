package runner

import (
	"time"

	"carma/containers"
	"carma/mapper/model"
	"carma/runner/admission"
	"carma/runner/clock"
	"carma/runner/deviceaccess"
	"carma/runner/doctor"
	"carma/runner/gpu"
	"carma/runner/journal"
	"carma/runner/limiter"
	"carma/runner/machine"
	"carma/runner/probing"
	"carma/runner/retention"
	"carma/runner/sharing"
	"carma/runner/suspend/support"
	"carma/runner/tasklog"

	"github.com/rs/zerolog"
)

// Options are the daemon's settings.
type Options struct {
	Version string
	DataDir string
	// Account is the user that the daemon runs as. It has the rights of an administrator.
	Account int
	Mapper  model.Options
	// Attach selects how containers get their GPUs. If empty, the daemon chooses for the engine
	// and the machine.
	Attach containers.Attach
	// NearCPUs restricts a task on GPUs of one NUMA node to that node's processors.
	NearCPUs bool
	// Devices returns what every container needs to reach the GPUs. Nil adds nothing.
	Devices func(model.TaskID, int) ([]containers.Mount, []string)
	// DeviceAccess checks whether containers can open their GPUs, or is nil for no checks,
	// as with simulated GPUs and in a cluster.
	DeviceAccess deviceaccess.Checker
	// Boot names the machine's boot. If empty, the kernel is asked.
	Boot string
	// Speed is the initial speed of a simulated server's time.
	Speed float64
	// SetSpeed is called when the speed of a simulated server changes. It is nil with
	// real GPUs.
	SetSpeed func(float64)
	// SampleEvery is the time between two samples, in the daemon's time.
	SampleEvery time.Duration
	// Activity selects how one score is computed from the readings in a window:
	// [monitor.ActivityMean] (empty) or [monitor.ActivityRisk].
	Activity string
	// Pull is the pull policy: missing, always or never.
	Pull string
	// StopGrace is the time between a stop signal and the kill.
	StopGrace time.Duration
	// AllowedMounts are folders that tasks may mount; ~ is the submitter's home.
	AllowedMounts []string
	// Fittings are the devices and limits that tasks may have.
	Fittings admission.Fittings
	// MountDir is the folder of the users' mounts (mounts.DefaultDir). If empty, the
	// engine gets the paths that were checked, and later changes of these paths take
	// effect.
	MountDir string
	// HostTasks names the users who may run tasks without an image: all, admins, none (or
	// empty), or a group. HostFolders are the machine's folders that these tasks see.
	HostTasks   string
	HostFolders []string
	// Open lets everybody see the environment and output of tasks if their submitters do
	// not set a visibility.
	Open bool
	// OOMTexts are error texts of programs that mean that GPU memory ran out, in addition to
	// the built-in texts.
	OOMTexts []string
	// Bounds limits one task's use of the machine.
	Bounds machine.Bounds
	// PerUser limits one user's use of the daemon.
	PerUser admission.PerUser
	// AdminGroup names the group of the administrators, see package rights. If empty, only
	// root and the daemon's account are administrators.
	AdminGroup string
	// ClusterAdmins are the users of a cluster who have the rights of administrators. A
	// name with @ before it is a group of the cluster.
	ClusterAdmins []string
	// MPS configures GPU sharing by MPS. Nil means time slices of the driver.
	MPS *sharing.MPS
	// NoMPS is the reason why MPS is nil although it was configured, or empty if it was not
	// configured.
	NoMPS string
	// Limits limits the GPU memory of tasks, beside MPS.
	Limits limiter.Options
	// Suspending configures how tasks are suspended, or is nil if they are not.
	Suspending *support.Options
	// NoSuspending is the reason why Suspending is nil if another driver would not help, or empty.
	NoSuspending string
	// Closed is set if containers have no network. Then suite networks have no access to
	// other networks either.
	Closed bool
	// Calibrate makes the machine's own environment, or is nil if none is made.
	Calibrate doctor.Calibrating
	// Init is the path of the program carma-init, which a proof runs, or empty if it is
	// missing.
	Init string
	// Owner returns the task of a process of this machine. If nil, the process's control
	// groups identify the task.
	Owner func(pid int) (task model.TaskID, attempt int, ok bool)
	// Keep bounds how many finished tasks are kept, and how long.
	Keep retention.Keep
	// Notify has the settings of messages.
	Notify Notifying
	// Probing says when and how tasks are probed.
	Probing probing.Settings
}

// Deps are the parts a Runner works with. It does not close them.
type Deps struct {
	Journal   *journal.Journal
	Logs      *tasklog.Store
	Driver    containers.Driver
	GPUs      gpu.Source
	Estimator admission.Estimator
	Clock     *clock.Clock
	Log       zerolog.Logger
}
