package attempt

import (
	"context"
	"errors"
	"time"

	"carma/containers"
	"carma/internal/failpoint"
	"carma/mapper/model"
	"carma/runner/console"
	"carma/runner/containerfiles"
	"carma/runner/engine"
	"carma/runner/loop"
	"carma/runner/record"
	"carma/runner/tasklog"
)

// Attempt runs one attempt of a task: it creates the container, follows its output and
// reports its end. When the daemon stops, its attempts leave the containers running; those
// of the next daemon take over, because every step may be repeated.
type Attempt struct {
	*core
	builder    *builder
	suspension *suspension
	resizing   *resizing
	output     *output
	exit       *classifier
	// console closes the connection to the program, or is nil if none is open.
	console func()
}

// New returns the attempt of a launch. resumed is set if an earlier daemon has begun the
// attempt.
func New(deps *Deps, rec *record.Record, launch model.Launch, resumed bool) *Attempt {
	c := newCore(deps, rec, launch)
	c.resumed, c.mps = resumed, deps.Sharing.Attempt(rec, launch)
	z := newResizing(c)
	s := newSuspension(c, z)
	o := &output{core: c}
	return &Attempt{core: c, builder: &builder{c}, suspension: s, resizing: z, output: o, exit: &classifier{core: c, output: o, suspension: s}}
}

// Stop asks for the end of the attempt. A later order counts only if it brings the kill
// forward.
func (a *Attempt) Stop(o record.StopOrder) { a.stop.order(o) }

// StopRequested reports whether the attempt has been asked to end.
func (a *Attempt) StopRequested() bool { return a.stopRequested() }

// Order gives an order to suspend or resume the attempt. It returns false if it drops the
// order, because the one before has no answer yet.
func (a *Attempt) Order(o Order) bool {
	select {
	case a.suspension.orders <- o:
		return true
	default:
		return false
	}
}

// Resize asks for the container's limits to be set to what is allocated to the attempt. It
// does not wait.
func (a *Attempt) Resize() { a.resizing.order() }

// Resized waits for the results of all calls of Resize until now.
func (a *Attempt) Resized(ctx context.Context) error { return a.resizing.wait(ctx) }

// Run runs the attempt to its end, or until ctx ends with the daemon.
func (a *Attempt) Run(ctx context.Context) {
	log := a.deps.Log.With().Int64("task", int64(a.launch.Task)).Int("attempt", a.launch.Attempt).Logger()
	a.deps.Logs.Own(int64(a.launch.Task), a.rec.User)
	out, err := a.deps.Logs.Writer(int64(a.launch.Task), a.launch.Attempt)
	if err != nil {
		log.Warn().Err(err).Msg("the output cannot be kept")
	}
	id, end := a.execute(ctx, out)
	if ctx.Err() == nil {
		a.mps.Leave(end.class)
	}
	if out != nil {
		if err := out.Close(); err != nil {
			log.Warn().Err(err).Msg("the output could not all be kept")
		}
	}
	if ctx.Err() != nil {
		return
	}
	failpoint.Hit("worker-ended")
	err = a.deps.Loop.Do(ctx, a.exit.exited(end))
	failpoint.Hit("worker-end-stored")
	if err == nil {
		a.deps.Energy.Forget(a.key())
	}
	if err != nil || id == "" {
		return
	}
	// The end is durable: the container is no longer needed.
	defer a.removeVacate()
	a.deps.Limiter.Clear(ctx, id)
	if _, err := a.deps.Engine.Retry(ctx, func() error { return a.deps.Driver.Remove(ctx, id) }); err != nil && ctx.Err() == nil {
		log.Warn().Err(err).Str("container", id).Msg("the container could not be removed; it will be at the next start")
	}
}

// execute brings the attempt to its end, from any state of its container. id is empty if
// there is no container to remove.
func (a *Attempt) execute(ctx context.Context, out *tasklog.Writer) (id string, end ending) {
	var tail containers.Tail
	failpoint.Hit("worker-begins")
	defer func() {
		if a.console != nil {
			a.console()
		}
	}()
	id, err := a.begin(ctx)
	if err != nil {
		return a.clear(ctx, id), a.exit.beginEnding(err)
	}
	if id == "" {
		return "", ending{class: model.ExitStopped, message: "stopped before it started"}
	}
	defer a.deps.Memory.Follow(a.key(), id, a.containerName())()
	defer a.deps.Processes.Add(a.key(), id, a.containerName())()
	failpoint.Hit("worker-begun")
	defer a.openPorts(ctx, id)()
	a.connect(ctx, id)
	a.account()
	if len(a.launch.Grants) > 0 {
		a.deps.Monitor.Watch(a.key(), a.exit.memories(), !a.resumed)
	}
	defer a.followClient(ctx, id)()
	started := a.deps.Clock.Now()
	if err := a.checkGPUs(ctx, id); err != nil { // before the start counts as successful
		return id, a.exit.unstarted(wrongGPUs(err), err.Error())
	}
	a.deps.Loop.Post(loop.Fact(model.Started{At: started, Task: a.launch.Task, Attempt: a.launch.Attempt}))

	failpoint.Hit("worker-start-posted")
	defer a.watchDevices(ctx, id)()
	var done func()
	a.output.following, done = a.deps.Followers.Add(a.key())
	defer done()
	if driver, ok := engine.As[containers.OutputAttacher](a.deps.Driver); ok {
		defer a.output.following.Attach(ctx, driver, id, a.rec.Submit.TTY)()
	}
	logged := make(chan struct{})
	logCtx, endLog := context.WithCancel(ctx)
	defer endLog()
	go func() { defer close(logged); a.output.copy(logCtx, id, out, &tail) }()
	stopping := make(chan struct{})
	stopCtx, endStop := context.WithCancel(ctx)
	a.deps.Running.Go(func() { a.suspension.serve(stopCtx, id) }) // in a goroutine, so that the end of the attempt does not wait for a driver that hangs
	go func() { defer close(stopping); a.stopWhenAsked(stopCtx, id) }()

	exit, outages, err := a.await(ctx, id)
	heard := time.Now()
	byEngine := err == nil && (outages > 0 || a.exit.endedByEngine(ctx, exit, heard)) // the engine is asked at once, because it may answer again soon
	endStop()
	<-stopping
	a.output.await(ctx, logged, out, endLog) // the last output decides the outcome
	if errors.Is(err, containers.ErrNotFound) {
		return id, ending{class: model.ExitInfrastructure, code: 137, message: "its container was removed by somebody else"}
	}
	if err != nil { // the daemon stops
		return id, ending{class: model.ExitInfrastructure, message: err.Error()}
	}
	return id, a.exit.deviceEnding(a.exit.classify(ctx, exit, &tail, byEngine || a.exit.endedByEngine(ctx, exit, heard)))
}

// account starts counting the energy of the attempt. A container that has ended while no
// daemon ran uses none.
func (a *Attempt) account() {
	stayed := a.adopted != nil && a.adopted.State == containers.StateRunning
	if phase := a.rec.Task.Phase; a.resumed && (phase == model.Suspended || phase == model.Resuming) {
		return
	}
	if a.adopted == nil || a.adopted.State != containers.StateExited {
		a.deps.Energy.Start(a.deps.Clock.Now(), a.key(), a.rec.User, a.uuids(), stayed)
	}
}

// await returns the end of the container, or ErrNotFound if it is gone. After any other
// error the container counts as running, and the engine is asked again. outages counts how
// often the engine did not answer.
func (a *Attempt) await(ctx context.Context, id string) (exit containers.Exit, outages int, err error) {
	gone := false
	err = a.deps.Engine.Insist(ctx, func() error {
		n, err := a.deps.Engine.Retry(ctx, func() (err error) { exit, err = a.deps.Driver.Wait(ctx, id); return err })
		outages += n
		if gone = errors.Is(err, containers.ErrNotFound); gone {
			return nil
		}
		return err
	})
	if gone {
		err = containers.ErrNotFound
	}
	return exit, outages, err
}

// begin makes and starts the container. An empty ID without an error means that
// the attempt was stopped before it could start.
func (a *Attempt) begin(ctx context.Context) (id string, err error) {
	if a.stopRequested() && !a.resumed {
		return "", nil
	}
	if err := a.deps.Engine.WaitAnswer(ctx); err != nil {
		return "", err
	}
	if a.resumed {
		c, err := a.find(ctx)
		if err != nil || c != nil {
			return a.adopt(ctx, c, err)
		}
		if a.hasStarted() {
			return "", errGone
		}
		if a.stopRequested() {
			return "", nil
		}
	}
	if may, err := a.mayCreate(ctx); err != nil || !may {
		return "", err
	}
	if err := mpsFault(a.mps.Join(ctx)); err != nil {
		return "", err
	}
	spec, files, err := a.builder.spec()
	if err != nil {
		return "", err
	}
	asked := len(a.rec.Submit.Mounts)
	host, placed, err := a.deps.Places.Place(ctx, a.rec, spec.Name, spec.Mounts[:asked], containerfiles.Beside(&spec, asked, len(files) > 0))
	defer placed()
	if err != nil {
		return "", err
	}
	if a.rec.Submit.Bare() {
		a.deps.Host.Furnish(&spec, a.rec, host)
	}
	if err := a.deps.Places.Add(&spec, files); err != nil {
		return "", err
	}
	if id, err = a.create(ctx, spec); err != nil || id == "" {
		return "", err
	}
	a.onCreated()
	if a.stopRequested() {
		if _, err := a.deps.Engine.Retry(ctx, func() error { return a.deps.Driver.Remove(ctx, id) }); err != nil {
			return id, err
		}
		return "", nil
	}
	if err := a.memory.Limit(ctx, id); err != nil {
		return id, err
	}
	return id, a.startIt(ctx, id)
}

// connect registers the attempt's container with its terminal or input, if it has one. Further calls do nothing.
func (a *Attempt) connect(ctx context.Context, id string) {
	if a.console != nil {
		return
	}
	sub := &a.rec.Submit
	a.console = a.deps.Consoles.Open(ctx, console.Options{
		Key: a.key(), ID: id, Terminal: sub.TTY, Input: sub.Interactive, Resumed: a.resumed,
		Driver: a.deps.Driver, Logs: a.deps.Logs, Clock: a.deps.Clock, Log: a.deps.Log, Touch: func(ev model.TerminalInput) { a.deps.Loop.Offer(ev) },
	})
}
