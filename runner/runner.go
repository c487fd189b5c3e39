package runner

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"carma/containers"
	"carma/estimator"
	"carma/mapper"
	"carma/runner/gpu"
	"carma/runner/journal"
	"carma/runner/tasklog"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"
)

// Estimator predicts at submission what a task will use of its GPUs.
type Estimator interface {
	// Estimate is of its memory.
	Estimate(estimator.Query) (estimator.Estimate, error)
	// Expect is of how busy it keeps them, and how long; the zero value where
	// nothing is known.
	Expect(estimator.Query) mapper.Expected
}

// Options are the daemon's settings.
type Options struct {
	Version string
	DataDir string
	Mapper  mapper.Options
	// Attach is how containers get their GPUs; empty: chosen by what the engine
	// and the machine have.
	Attach containers.Attach
	// Devices adds what every container needs to reach the GPUs; nil: nothing.
	Devices func(mapper.TaskID, int) ([]containers.Mount, []string)
	// Speed is how fast a simulated server's time runs from the start on.
	Speed float64
	// SetSpeed is called when the speed of a simulated server changes; nil
	// where the GPUs are real.
	SetSpeed func(float64)
	// SampleEvery is the time between two samples, in the daemon's time.
	SampleEvery time.Duration
	// Activity is how the activity of a window becomes one figure: ActivityMean
	// (empty) or ActivityRisk.
	Activity string
	// Pull: missing, always or never.
	Pull string
	// StopGrace is the time between a stop signal and the kill.
	StopGrace time.Duration
	// AllowedMounts are folders that tasks may mount; ~ is the submitter's home.
	AllowedMounts []string
	// MountDir is where the engine finds what users mount (mounts.DefaultDir).
	// Empty: it gets the paths that were checked, and follows later changes of
	// them.
	MountDir string
	// Open: everybody sees the environment and output of tasks whose submitters
	// do not set a visibility.
	Open bool
	// Bounds are what one task may use of the machine.
	Bounds Bounds
	// PerUser is what one user may have of the daemon.
	PerUser PerUser
	// AdminGroup's members may stop the tasks of others; empty: only root.
	AdminGroup string
	// MPS is how GPUs are shared; nil: by time slices, as the driver does.
	MPS *MPS
	// Limits are how their memory is bounded beside that.
	Limits Limits
	// Init is the path of the program carma-init, which a proof runs; empty: it
	// is not there.
	Init string
	// Owner tells the task of a process of this machine; nil: its control groups
	// tell.
	Owner func(pid int) (task mapper.TaskID, attempt int, ok bool)
	// Keep bounds how many finished tasks are kept, and how long.
	Keep Keep
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

// Runner is the daemon without its socket. Make one with [New], then [Runner.Run].
type Runner struct {
	Deps
	opt      Options
	instance string        // labels the containers of this data folder
	state    *mapper.State // the loop's own
	seq      int64         // of the last event applied
	book     *book
	inbox    chan *change
	queries  chan func()
	engine   *engine
	trouble  *troubles
	lookout  *lookout
	checked  checked
	set      atomic.Pointer[Live] // options that can change
	draining atomic.Bool
	stopping atomic.Bool // the server ends: requests are cut off
	// For health.go, which does not wait for the loop: since when it is at its
	// round, 0 while it waits; and whether the journal refused the last commit.
	busy       atomic.Int64
	unwritable atomic.Bool
	tight      atomic.Bool // the journal lives on its reserve; the loop sets it
	monitor    *monitor
	images     imageCache
	probers    probers
	devices    map[mapper.GPUID]mapper.GPUInfo
	found      map[mapper.GPUID]gpu.Device // the same, as the source tells
	owners     *owners
	limiter    limiter
	users      func(uid, gid int) Caller // who somebody is now, as the system knows
	opening    chan struct{}             // one token for each look at a user's files
	keeping    outputHealth

	// The loop's own:
	nextID    mapper.TaskID
	compared  mapper.TaskID   // see findCompared
	names     map[string]bool // being submitted in this batch
	pending   journal.Batch   // decisions and records for the next commit
	due       []due           // what to carry out after it
	explained explanations
	workers   map[mapper.TaskID]*worker
	early     []*change // of the start, which found no room on the disk
	sinceSnap int
	snapping  sync.WaitGroup
	full      bool // the journal refused the last commit

	work     context.Context // ends when the daemon stops; containers go on
	endWork  context.CancelFunc
	attempts sync.WaitGroup // what a daemon that drains waits for
	side     sync.WaitGroup // what goes on until work ends
}

var pid = os.Getpid()

// New loads what the journal has and returns a daemon that is ready to run.
// ctx bounds the first look at the GPUs.
func New(ctx context.Context, opt Options, deps Deps) (*Runner, error) {
	if err := opt.Mapper.Validate(); err != nil {
		return nil, err
	}
	deps.Driver = bounded{failing(deps.Driver)}
	r := &Runner{
		Deps: deps, opt: opt, book: newBook(),
		inbox: make(chan *change, 1024), queries: make(chan func()),
		probers: newProbers(), workers: map[mapper.TaskID]*worker{}, names: map[string]bool{}, devices: map[mapper.GPUID]mapper.GPUInfo{},
		found: map[mapper.GPUID]gpu.Device{}, owners: newOwners(), users: callerOf, opening: make(chan struct{}, maxOpening),
	}
	live, err := liveOf(&opt)
	if err != nil {
		return nil, err
	}
	r.set.Store(live)
	r.work, r.endWork = context.WithCancel(context.WithoutCancel(ctx))
	r.trouble, r.lookout = newTroubles(), newLookout()
	r.engine = newEngine(deps.Driver, deps.Log)
	r.monitor = newMonitor(deps.GPUs, deps.Clock, opt.SampleEvery, deps.Log)
	score, err := scoreOf(opt.Activity)
	if err != nil {
		return nil, err
	}
	r.monitor.score = score
	if s, ok := deps.GPUs.(gpu.Attributing); ok {
		s.SetOwner(r.owners.owner)
	}
	if err := r.findGPUs(ctx); err != nil {
		return nil, err
	}
	r.engine.probe(ctx)
	if err := r.findLimits(ctx); err != nil {
		return nil, err
	}
	if err := r.loadInstance(); err != nil {
		return nil, err
	}
	if err := r.load(); err != nil {
		return nil, err
	}
	if err := r.goOnInTime(upFor()); err != nil {
		return nil, err
	}
	if err := r.acceptLostRecords(); err != nil {
		return nil, err
	}
	return r, r.lookAtStart(ctx)
}

// SetSpeed changes how fast a simulated server's time runs.
func (r *Runner) SetSpeed(speed float64) error {
	if r.opt.SetSpeed == nil {
		return errors.New("real GPUs run at the clock's own speed")
	}
	if !(speed > 0) {
		return fmt.Errorf("speed %v is not above 0", speed)
	}
	r.Clock.SetSpeed(speed)
	r.opt.SetSpeed(speed)
	anchor, err := json.Marshal(r.Clock)
	if err != nil {
		return err
	}
	r.monitor.wake()
	return r.note("clock", anchor)
}

// Run works until ctx ends. It returns nil then: the containers go on and the
// next daemon finds them.
func (r *Runner) Run(ctx context.Context) error {
	defer r.endWork()
	if err := r.greet(ctx); err != nil {
		return err
	}
	r.side.Go(func() { r.engine.watch(r.work, r.engineChanged) })
	r.side.Go(func() { r.monitor.run(r.work, r.sampled) })
	r.side.Go(func() { r.lookLate(r.work) })
	r.side.Go(func() { frugal(r.work) })
	r.side.Go(func() { r.checkWhole(r.work, r.Journal.Small()) })
	r.sweepMounts()
	r.resume()
	err := r.loop(ctx)
	r.endWork()
	r.attempts.Wait()
	r.side.Wait()
	r.snapping.Wait()
	if storeErr := r.store(); err == nil {
		err = storeErr
	}
	if snapErr := r.snapshotNow(); errors.Is(snapErr, journal.ErrFull) {
		r.Log.Warn().Err(snapErr).Msg("no snapshot could be stored; the next start will take longer")
	} else if err == nil {
		err = snapErr
	}
	return err
}

// RunAndServe works and answers the API on l until ctx ends, or either fails.
func (r *Runner) RunAndServe(ctx context.Context, l net.Listener) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { defer end(); return r.Run(ctx) }) // it may end by itself, drained
	g.Go(func() error { return r.Serve(ctx, l) })
	return g.Wait()
}

// findGPUs lists the GPUs; they do not change while the daemon runs.
func (r *Runner) findGPUs(ctx context.Context) error {
	devices, err := r.GPUs.GPUs(ctx)
	if err != nil {
		return fmt.Errorf("list the GPUs: %w", err)
	}
	if len(devices) == 0 {
		return fmt.Errorf("%s has no GPUs", r.GPUs.Name())
	}
	for _, d := range devices {
		r.found[mapper.GPUID(d.UUID)] = d
		r.devices[mapper.GPUID(d.UUID)] = mapper.GPUInfo{ID: mapper.GPUID(d.UUID), Index: d.Index, Model: d.Model, Capacity: d.Capacity}
	}
	return nil
}

// greet journals the options, the GPUs and the engine's state as they are now.
func (r *Runner) greet(ctx context.Context) error {
	now := r.Clock.Now()
	found := mapper.GPUsFound{At: now}
	for _, g := range r.devices {
		found.GPUs = append(found.GPUs, g)
	}
	slices.SortFunc(found.GPUs, func(a, b mapper.GPUInfo) int { return cmp.Compare(a.Index, b.Index) })
	up, why := r.launchable()
	kept, err := r.apply([]*change{
		fact(mapper.Configured{At: now, Options: r.opt.Mapper, Format: mapper.DecisionFormat, Program: r.opt.Version}), fact(found),
		fact(mapper.EngineChanged{At: now, Up: up, Reason: why}),
	})
	r.early = kept
	return err
}

func (r *Runner) engineChanged(up bool, why string) {
	if r.draining.Load() {
		return // nothing is started anyway
	}
	if up {
		up, why = r.launchable()
	}
	r.post(fact(mapper.EngineChanged{At: r.Clock.Now(), Up: up, Reason: why}))
}

// sampled hands a sample to the loop. One that it has no time for is dropped:
// the next one says more.
func (r *Runner) sampled(ev mapper.Sampled) bool {
	c := fact(ev)
	c.keep = false
	select {
	case r.inbox <- c:
		return true
	default:
		return false
	}
}
