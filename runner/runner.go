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

	"carma/containers"
	"carma/estimator/probe"
	"carma/internal/units"
	"carma/mapper"
	"carma/mapper/model"
	"carma/runner/access"
	"carma/runner/admission"
	"carma/runner/api"
	"carma/runner/attempt"
	"carma/runner/audit"
	"carma/runner/canary"
	"carma/runner/clock"
	"carma/runner/console"
	"carma/runner/containerfiles"
	"carma/runner/control"
	"carma/runner/dashboard"
	"carma/runner/deviceaccess"
	"carma/runner/doctor"
	"carma/runner/energy"
	"carma/runner/engine"
	"carma/runner/gpu"
	"carma/runner/health"
	"carma/runner/helpers"
	"carma/runner/history"
	"carma/runner/hostenv"
	"carma/runner/imagelookup"
	"carma/runner/inventory"
	"carma/runner/jobs"
	"carma/runner/limiter"
	"carma/runner/loop"
	"carma/runner/machine"
	"carma/runner/measure"
	"carma/runner/messages"
	"carma/runner/metrics"
	"carma/runner/monitor"
	"carma/runner/ports"
	"carma/runner/probing"
	"carma/runner/problems"
	"carma/runner/processes"
	"carma/runner/pull"
	"carma/runner/query"
	"carma/runner/reconcile"
	"carma/runner/record"
	"carma/runner/request"
	"carma/runner/retention"
	"carma/runner/server"
	"carma/runner/sharing"
	"carma/runner/storedoutput"
	"carma/runner/streams"
	"carma/runner/suites"
	"carma/runner/suspend/support"
	"carma/runner/terminals"
	"carma/runner/throughput"
	"carma/runner/trial"
	"carma/runner/usage"
	"carma/runner/usermounts"
	"carma/runner/waitreason"

	"golang.org/x/sync/errgroup"
)

// Runner is the daemon without its socket. Make one with [New], then [Runner.Run].
type Runner struct {
	Deps
	opt        Options
	authz      *access.Authorizer
	instance   string // labels the containers of this data folder
	loop       *loop.Loop
	records    *record.Store
	find       *record.Finder // in memory or in the journal
	control    *control.Controller
	engine     *engine.Health
	trouble    *problems.Current
	past       *usage.Archive
	retention  *retention.Remover
	reconciler *reconcile.Reconciler
	checked    checked
	set        atomic.Pointer[Live] // options that can change
	draining   atomic.Bool
	canary     *canary.Canary
	monitor    *monitor.Monitor
	energy     *energy.Accounts
	images     *imagelookup.Lookup
	pull       *pull.Puller
	prober     *probing.Prober
	trials     *trial.Trials
	doctor     *doctor.Doctor
	prover     *doctor.Prover
	gpus       *inventory.GPUs
	attaching  *inventory.Attachment // of GPUs to containers
	owners     *processes.Index
	ports      *ports.Book
	limiter    *limiter.Limiter
	sharing    *sharing.State
	hostMem    *machine.Memory
	access     *deviceaccess.Watcher
	suspending *support.Support
	users      func(uid, gid int) request.Caller // looks up a user of the system
	numbers    *admission.Numbers
	admission  *admission.Controller
	userMounts *usermounts.Opener
	host       *hostenv.Environment
	places     *containerfiles.Places // the files of containers beside their images
	keeping    *storedoutput.Health
	followers  *throughput.Followers // read the progress of running attempts
	suites     *suites.Suites
	consoles   *console.Registry
	terminals  *terminals.Terminals
	streams    *streams.Streams
	server     *server.Server
	dashboard  *dashboard.Feed
	history    *history.Reader
	query      *query.Tasks
	overview   *query.Server
	waited     *waitreason.Recorder
	pages      *metrics.Pages
	meter      *measure.Meter
	counter    *measure.Counter
	health     *health.Checks
	messenger  *messages.Messenger // nil if no messages are sent
	channels   *messages.Channels
	jobs       *jobs.Reconciler

	// The loop's own:
	attempts map[model.TaskID]*attempt.Attempt

	attemptDeps *attempt.Deps

	work    context.Context // ends when the daemon stops; containers keep running
	endWork context.CancelFunc
	running sync.WaitGroup // attempts; a draining daemon waits for them
	side    sync.WaitGroup // goroutines that run until work ends
}

// New loads the journal and returns a daemon that is ready to run. ctx bounds
// its calls of the engine and the GPUs. The error is a [limiter.CannotLimitError] if
// the driver must limit tasks and cannot, and a [journal.Refusal] if containers
// are newer than the journal.
func New(ctx context.Context, opt Options, deps Deps) (*Runner, error) {
	if err := mapper.Validate(opt.Mapper); err != nil {
		return nil, err
	}
	deps.Driver = engine.Bounded{Driver: failing(deps.Driver)}
	r := &Runner{
		Deps:      deps,
		opt:       opt,
		records:   record.NewStore(),
		attempts:  map[model.TaskID]*attempt.Attempt{},
		owners:    processes.New("/"),
		ports:     ports.New(),
		hostMem:   machine.NewMemory("/"),
		followers: throughput.NewFollowers(deps.Clock),
		consoles:  console.New(),
		users:     request.LookupCaller,
		keeping:   storedoutput.NewHealth(deps.Logs, deps.Journal, deps.Log),
	}
	r.authz = r.newAuthorizer()
	host, _ := os.Hostname()
	r.pages = metrics.New(opt.Version, host, func(ctx context.Context) (metrics.State, error) { return r.meter.State(ctx) })
	deps.Journal.OnCommit(r.pages.Committed)
	live, err := liveOf(&opt)
	if err != nil {
		return nil, err
	}
	r.set.Store(live)
	r.work, r.endWork = context.WithCancel(context.WithoutCancel(ctx))
	r.find = &record.Finder{Records: r.records, Journal: deps.Journal}
	r.loop = loop.New(r.work, deps.Journal, r.records, deps.Clock, deps.Log, opt.Mapper, &hooks{Runner: r})
	r.server = r.newServer()
	r.trouble = problems.New(deps.Log)
	r.waited = waitreason.NewRecorder(r.records, deps.Clock, r.loop.Look, deps.Log)
	r.retention = retention.New(retention.Deps{
		Journal: deps.Journal, Records: r.records, Logs: deps.Logs, Clock: deps.Clock, Log: deps.Log,
		Keep: func() retention.Keep { return r.live().Keep }, Look: r.loop.Look, Remove: func(ctx context.Context, by string, ids ...model.TaskID) error {
			return r.control.RemoveAll(ctx, by, ids...)
		},
	})
	r.engine = engine.New(deps.Driver, deps.Log)
	if r.monitor, err = monitor.New(deps.GPUs, deps.Clock, opt.SampleEvery, opt.Activity, deps.Log); err != nil {
		return nil, err
	}
	if s, ok := deps.GPUs.(gpu.Attributing); ok {
		s.SetOwner(r.owners.Owner)
	}
	r.suspending = support.New(opt.Suspending, cmp.Or(opt.NoSuspending, "carma cannot suspend tasks on "+deps.GPUs.Name()), opt.SetSpeed != nil)
	up := clock.ReadUptime()
	if r.gpus, err = inventory.New(ctx, deps.GPUs, cmp.Or(opt.Boot, up.Boot), deps.Log); err != nil {
		return nil, err
	}
	r.health = health.New(r.loop, r.trouble, r.monitor)
	r.counter = measure.NewCounter(r.pages.Tally, r.records, r.gpus)
	r.past = usage.New(deps.Journal, r.records, r.authz, r.gpus.Index)
	r.sharing = sharing.New(sharing.Options{MPS: opt.MPS, Missing: opt.NoMPS, Source: deps.GPUs, Devices: r.gpus.Devices, Changed: r.gpusChanged, Log: deps.Log})
	r.attaching = inventory.NewAttachment(r.gpus, opt.Attach, deps.Driver.Name(), r.engine.Info)
	r.engine.Probe(ctx)
	if r.limiter, err = limiter.New(ctx, opt.Limits, limiter.Deps{
		Driver: r.Driver, Engine: r.engine, GPUs: r.gpus, Soft: r.monitor, Simulated: opt.SetSpeed != nil,
		Watchdog: opt.Mapper.Watchdog, MPS: r.sharing.MemoryLimit, Free: freeMemory(r.loop), Log: deps.Log,
	}); err != nil {
		return nil, err
	}
	if err := r.loadInstance(); err != nil {
		return nil, err
	}
	r.control = control.New(control.Config{
		Loop: r.loop, Find: r.find, Authz: r.authz, GPUs: r.gpus, Logs: deps.Logs, Reread: r.monitor.Wake, Grace: r.grace, NoSuspending: opt.NoSuspending,
	})
	users := func(uid, gid int) request.Caller { return r.users(uid, gid) }
	r.userMounts = usermounts.New(usermounts.Config{Driver: r.Driver, MountDir: opt.MountDir, Allowed: func() []string { return r.live().AllowedMounts }})
	r.host = hostenv.New(hostenv.Config{
		Driver: r.Driver, Engine: r.engine, Authz: r.authz, Opener: r.userMounts, Users: users, MountDir: opt.MountDir, Init: opt.Init,
		Settings: func() hostenv.Settings {
			return hostenv.Settings{Tasks: r.live().HostTasks, Folders: r.live().HostFolders}
		},
	})
	r.places = containerfiles.New(containerfiles.Config{
		Driver: r.Driver, Opener: r.userMounts, Host: r.host, Users: users, MountDir: opt.MountDir, DataDir: opt.DataDir, Instance: r.instance, Work: r.work, Log: r.Log,
	})
	r.trials = trial.New(r.Driver, r.instance)
	r.terminals = terminals.New(terminals.Config{
		Find: r.find, Authz: r.authz, Driver: r.Driver, Consoles: r.consoles, Stopping: r.loop.Stopping, Work: r.work,
		Upgrade: r.server.Upgrade, Log: r.Log,
	})
	r.canary = canary.New(canary.Config{
		Program: opt.Init, Instance: r.instance, Driver: r.Driver, Engine: r.engine, Trials: r.trials, Loop: r.loop, Log: r.Log,
	})
	r.newDoctor()
	if err := r.load(); err != nil {
		return nil, err
	}
	if r.pull, err = pull.New(r.Driver, loop.MetaStore{Journal: r.Journal}); err != nil {
		return nil, err
	}
	r.images = imagelookup.New(r.Driver, r.engine, r.pull, func() string { return r.live().Pull })
	if err := r.openSuites(); err != nil {
		return nil, err
	}
	for _, id := range r.gpus.Remember(ctx, r.loop.State().GPUs()) {
		r.monitor.MarkBroken(id)
	}
	if err := r.restoreClock(up); err != nil {
		return nil, err
	}
	r.openOutbox(opt.Notify, host)
	r.newAdmission()
	r.prober = probing.New(probing.Config{
		Driver: r.Driver, Engine: r.engine, Loop: r.loop, Records: r.records, Admission: r.admission, Places: r.places, Host: r.host, Clock: r.Clock, Log: r.Log,
		Instance: r.instance, DataDir: opt.DataDir, Work: r.work, Side: &r.side, Run: opt.Probing.Run, Limits: func() probe.Limits { return r.live().Probing.Limits },
	})
	cluster, _ := engine.As[containers.Jobber](r.Driver)
	r.jobs = jobs.New(jobs.Config{Cluster: cluster, Loop: r.loop, Records: r.records, Log: r.Log, Submit: r.admission.SubmitJob})
	r.loadEnergy()
	r.access = deviceaccess.New(opt.DeviceAccess, func(key gpu.AttemptKey, now deviceaccess.Result) { r.attemptDeps.DevicesChanged(key, now) })
	r.monitor.SetHooks(monitor.Hooks{
		Energy: r.spend, Hosts: r.hostSample, Reset: r.gpusReset,
		Clients: func(samples []gpu.Sample) {
			r.sharing.CheckClients(samples)
			r.access.Follow(samples)
		},
	})
	r.setAttemptDeps()
	r.newQueries()
	if err := r.reconciler.AcceptLostRecords(); err != nil {
		return nil, err
	}
	return r, r.reconciler.AtStart(ctx)
}

// openSuites loads the suites.
func (r *Runner) openSuites() (err error) {
	r.suites, err = suites.Open(suites.Config{
		Instance: r.instance, Closed: r.opt.Closed, Driver: r.Driver, Engine: r.engine, Images: r.pull, Journal: r.Journal, Logs: r.Logs,
		Loop: r.loop, Find: r.find, Authz: r.authz, Places: r.places, Opener: r.userMounts, Memory: r.hostMem, Clock: r.Clock, Log: r.Log, Work: r.work,
		Draining: r.draining.Load,
		Settings: func() suites.Settings {
			l := r.live()
			u := l.PerUser
			return suites.Settings{
				Limits: helpers.Limits{Suites: u.Suites, Helpers: u.Helpers, Volumes: u.Volumes, Pull: l.Pull, Grace: l.StopGrace},
				Bounds: l.Bounds, Keep: l.Keep,
			}
		},
	})
	return err
}

// newQueries makes what answers users' questions about tasks and the daemon.
func (r *Runner) newQueries() {
	reasons := new(waitreason.Cache)
	r.query = query.New(query.Config{
		Loop: r.loop, Find: r.find, Authz: r.authz, GPUs: r.gpus, Monitor: r.monitor, Energy: r.energy, Followers: r.followers, Ports: r.ports, Clock: r.Clock,
		Reasons: reasons, Instance: r.instance, SampleEvery: r.opt.SampleEvery, Probing: r.prober.Doing, Undelivered: r.channels.Undelivered,
	})
	r.streams = streams.New(streams.Config{
		Find: r.find, Authz: r.authz, Logs: r.Logs, Ports: r.ports, Problems: r.trouble, Tasks: r.query, Clock: r.Clock,
	})
	r.overview = query.NewServer(query.ServerConfig{
		Loop: r.loop, Records: r.records, Authz: r.authz, GPUs: r.gpus, Monitor: r.monitor, Energy: r.energy, Engine: r.engine, Trouble: r.trouble, Output: r.keeping,
		Helpers: r.suites.Manager, Clock: r.Clock, Keep: func() retention.Keep { return r.live().Keep }, Draining: r.draining.Load,
		Daemon: api.Info{
			Version: r.opt.Version, PID: os.Getpid(), DataDir: r.opt.DataDir, Driver: r.Driver.Name(), Source: r.GPUs.Name(), Simulated: r.opt.SetSpeed != nil,
		},
	})
	r.meter = measure.NewMeter(measure.MeterConfig{
		Tasks: r.query, Loop: r.loop, Records: r.records, Journal: r.Journal, Monitor: r.monitor, Energy: r.energy, Engine: r.engine, Trouble: r.trouble,
		Health: r.health, Reasons: reasons, Clock: r.Clock, Draining: r.draining.Load,
	})
	r.dashboard = dashboard.New(dashboard.Config{Tasks: r.query, Server: r.overview, Records: r.records, Authz: r.authz, Clock: r.Clock, Work: r.work})
	r.history = history.New(history.Config{Journal: r.Journal, Find: r.find, Authz: r.authz, GPUs: r.gpus, Clock: r.Clock, Waited: r.waited, Why: r.query.Why})
}

// freeMemory returns a func that returns the memory on each GPU that no task has.
func freeMemory(l *loop.Loop) func(context.Context) map[model.GPUID]units.Bytes {
	return func(ctx context.Context) map[model.GPUID]units.Bytes {
		free := map[model.GPUID]units.Bytes{}
		_ = l.Look(ctx, func(s *mapper.State) {
			for _, g := range s.GPUs() {
				free[g.ID] = g.Free(s.Options().Headroom)
			}
		})
		return free
	}
}

// newAuthorizer returns the authorizer of a daemon.
func (r *Runner) newAuthorizer() *access.Authorizer {
	return access.New(access.Config{
		Account: r.opt.Account, Audit: audit.New(r.opt.DataDir), Driver: r.Driver, Now: r.Clock.Time, Log: r.Log,
		Settings: func() access.Settings {
			l := r.live()
			return access.Settings{AdminGroup: l.AdminGroup, ClusterAdmins: l.ClusterAdmins, HighPriority: l.PerUser.MayHigh, Open: l.Open}
		},
	})
}

// SetSpeed changes the speed of a simulated server's time, the ratio of the daemon's time
// to wall-clock time. It fails for real GPUs.
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
	r.monitor.Wake()
	r.followers.Wake()
	return r.loop.Note("clock", anchor)
}

// Run works until ctx ends. It then returns nil. The containers keep running, and the
// next daemon finds them.
func (r *Runner) Run(ctx context.Context) error {
	defer r.endWork()
	early, err := r.journalStartup(ctx)
	if err != nil {
		return err
	}
	r.side.Go(func() { r.engine.Watch(r.work, r.engineChanged) })
	r.side.Go(func() { r.monitor.Run(r.work, r.sampled) })
	r.side.Go(func() { r.access.Run(r.work) })
	r.side.Go(func() { r.gpus.Follow(r.work, r.gpusChanged) })
	r.side.Go(func() { r.waited.Run(r.work) })
	r.side.Go(func() { r.followers.Report(r.work, r.loop) })
	r.side.Go(func() {
		if r.reconciler.Later(r.work, func() { r.resumeAll() }) {
			r.loop.Post(r.engineNow())
		}
	})
	r.side.Go(func() { tuneGC(r.work) })
	r.side.Go(func() { r.checkWhole(r.work, r.Journal.Small()) })
	r.places.Sweep(r.loop.State(), r.suites.Manager.Has)
	r.attemptDeps.SweepVacate()
	r.side.Go(func() { r.suites.Run(r.work) })
	r.side.Go(func() {
		r.suspending.Find(r.work, r.Log, func() { r.loop.Post(loop.Fact(r.gpusFound(r.Clock.Now()))) })
	})
	r.messenger.Begin()
	r.side.Go(func() { r.messenger.Run(r.work) })
	r.side.Go(func() { r.jobs.Run(r.work) })
	r.resumeAttempts()
	err = r.loop.Run(ctx, early)
	r.endWork()
	r.running.Wait()
	r.side.Wait()
	r.storeEnergy()
	if closeErr := r.loop.Close(); err == nil {
		err = closeErr
	}
	return err
}

// RunAndServe works and answers the API on l until ctx ends, or either fails.
func (r *Runner) RunAndServe(ctx context.Context, l net.Listener) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	defer r.authz.Close()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { defer end(); return r.Run(ctx) }) // Run also ends when the daemon is drained
	g.Go(func() error { return r.server.Run(ctx, l) })
	return g.Wait()
}

// journalStartup journals the options, the GPUs and the engine's state as they are now. It
// returns the changes for which the disk has no room.
func (r *Runner) journalStartup(ctx context.Context) ([]*loop.Change, error) {
	now := r.Clock.Now()
	up, why := r.launchable()
	changes := []*loop.Change{
		loop.Fact(model.Configured{At: now, Options: r.opt.Mapper, Format: model.DecisionFormat, Program: r.opt.Version}), loop.Fact(r.gpusFound(now)),
		loop.Fact(model.EngineChanged{At: now, Up: up, Reason: why}),
	}
	if found := r.live().Bounds.HostsFound(now, r.opt.SetSpeed != nil); len(found.Hosts) > 0 || slices.ContainsFunc(r.loop.State().Hosts(), func(h model.Host) bool { return h.Known }) {
		changes = slices.Insert(changes, 2, loop.Fact(found))
	}
	return r.loop.Apply(changes)
}

func (r *Runner) engineChanged(up bool, why string) {
	if up {
		r.access.CheckAll() // an engine that starts may apply its device rules again
	}
	if r.draining.Load() {
		return // nothing is started anyway
	}
	if up {
		up, why = r.launchable()
	}
	r.loop.Post(loop.Fact(model.EngineChanged{At: r.Clock.Now(), Up: up, Reason: why}))
}

// sampled hands a sample to the loop. If the loop has no time for it, the sample is
// dropped, because the next one is newer.
func (r *Runner) sampled(ev model.Sampled) bool { return r.loop.Offer(ev) }
