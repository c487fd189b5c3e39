// Package admission decides whether the daemon takes a task: it checks a submission, looks its
// image up, predicts its use of GPUs, numbers and names its tasks and adds them to the
// scheduler's state ([Controller.SubmitAll]). It does the same for previews, for Jobs of a
// cluster and for changes of a task's request ([Controller.Update]). It owns the numbers of
// tasks, and the names that are being given in a batch of the loop.
package admission

import (
	"context"

	"carma/containers"
	"carma/estimator"
	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/access"
	"carma/runner/clock"
	"carma/runner/control"
	"carma/runner/engine"
	"carma/runner/gpu"
	"carma/runner/helpers"
	"carma/runner/hostenv"
	"carma/runner/imagelookup"
	"carma/runner/inventory"
	"carma/runner/limiter"
	"carma/runner/loop"
	"carma/runner/machine"
	"carma/runner/messages"
	"carma/runner/pull"
	"carma/runner/record"
	"carma/runner/taskkind"
	"carma/runner/usermounts"
)

// Estimator predicts what tasks use. Safe for concurrent use.
type Estimator interface {
	// Estimate predicts the task's GPU memory.
	Estimate(estimator.Query) (estimator.Estimate, error)
	// Expect predicts the task's activity and run time, or returns zero if nothing is
	// known.
	Expect(estimator.Query) model.Expected
}

// Settings are the settings of submissions, which can change.
type Settings struct {
	PerUser  PerUser
	Fittings Fittings
	Bounds   machine.Bounds
	Probe    string // tasks that are probed: ProbeAsked, ProbeUnknown or ProbeNever
}

// The values of [Settings].Probe.
const (
	ProbeAsked   = "asked"   // of tasks submitted with --probe
	ProbeUnknown = "unknown" // also of tasks about which nothing is known
	ProbeNever   = "never"
)

// Config has what a controller needs of the daemon.
type Config struct {
	Loop      *loop.Loop
	Records   *record.Store
	Find      *record.Finder
	Clock     *clock.Clock
	Numbers   *Numbers
	Authz     *access.Authorizer
	Control   *control.Controller
	Driver    containers.Driver
	Engine    *engine.Health
	Images    *imagelookup.Lookup
	Pull      *pull.Puller
	Estimator Estimator
	Source    gpu.Source
	GPUs      *inventory.GPUs
	Memory    *machine.Memory // of the machine
	Limiter   *limiter.Limiter
	Helpers   *helpers.Manager
	Channels  *messages.Channels
	Mounts    *usermounts.Opener
	Host      *hostenv.Environment
	Settings  func() Settings
	// Resized waits until the container of a running task has its new limits.
	Resized func(context.Context, model.TaskID) error
	// Folders returns the folders that carma mounts in tasks.
	Folders  func() []string
	HostIPC  bool        // tasks may have the machine's IPC namespace
	Headroom units.Bytes // memory of each GPU that the mapper leaves free
}

// Controller takes or refuses tasks. Safe for concurrent use.
type Controller struct {
	cfg   Config
	names map[string]bool // submitted in this batch; only the loop uses it
}

// New returns the controller of a daemon.
func New(cfg Config) *Controller {
	return &Controller{cfg: cfg, names: map[string]bool{}}
}

// BeginBatch forgets the names of the last batch. Only the loop calls it.
func (a *Controller) BeginBatch() { clear(a.names) }

// wantsProbe reports whether a task is to be probed. Only the loop calls it.
func (a *Controller) wantsProbe(rec *record.Record, est estimator.Estimate) bool {
	asked := rec.Submit.Probe || a.cfg.Settings().Probe == ProbeUnknown && est.Method == estimator.WholeGPUs && rec.Submit.Model() == ""
	return asked && a.cfg.Settings().Probe != ProbeNever && !a.cfg.Loop.State().Recalls(taskkind.Kind(rec))
}
