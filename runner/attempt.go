package runner

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"carma/containers"
	"carma/internal/failpoint"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/console"
	"carma/runner/containerfiles"
	"carma/runner/engine"
	"carma/runner/limiter"
	"carma/runner/loop"
	"carma/runner/record"
	"carma/runner/sharing"
	"carma/runner/tasklog"
	"carma/runner/throughput"
)

// worker runs one attempt: it creates the container, follows its output and reports its
// end. When the daemon stops, its workers leave the containers running; the next daemon's
// workers take over, because every step may be repeated.
type worker struct {
	deps    *attemptDeps
	rec     *record.Record
	launch  model.Launch
	resumed bool // a restarted daemon continues the attempt
	stop    *stopper
	aside   suspension
	// resizing is written before the worker starts.
	resizing *resizing
	memory   *limiter.Attempt // limits its GPU memory
	// mps is the attempt as a client of MPS. It is nil for one that must be no client.
	mps *sharing.Attempt
	// withoutGPU is set if the attempt was killed because it could not become a client of
	// MPS.
	withoutGPU atomic.Bool
	// deviceLost is set if the attempt was stopped because it cannot open its GPUs.
	deviceLost atomic.Bool
	// adopted is the container that an earlier daemon created, or nil if this daemon creates
	// it. It is written before the container is known to anybody else.
	adopted *containers.Container
	// files are the files that the suite puts into the container.
	files []api.SuiteFile
	heard atomic.Int64 // number of output lines received
	// erred is the wall-clock time in nanoseconds at which an output line last reported
	// exhausted memory, or 0.
	erred atomic.Int64
	// console closes the connection to the program, or is nil if none is open.
	console func()
	// following reads the task's progress. It is made before the output is read.
	following *throughput.Follower
}

// startWorker starts the worker of a launch. Only the loop calls it.
func (r *Runner) startWorker(l model.Launch, resumed bool) *worker {
	rec, _ := r.records.Get(l.Task)
	if rec == nil {
		// Only a journal that somebody has edited has no record here.
		r.Log.Error().Int64("task", int64(l.Task)).Msg("a task without a record cannot be launched")
		rec = &record.Record{Task: model.Task{Request: model.Request{ID: l.Task}}}
	}
	w := &worker{deps: r.attemptDeps, rec: rec, launch: l, resumed: resumed, stop: newStopper(), resizing: newResizing(), mps: r.sharing.Attempt(rec, l)}
	w.memory = r.limiter.Attempt(rec, l, w.grants)
	w.aside.begin(rec.Task.Phase)
	r.workers[l.Task] = w
	r.attempts.Go(func() { w.run(r.work) })
	return w
}

func (w *worker) run(ctx context.Context) {
	log := w.deps.Log.With().Int64("task", int64(w.launch.Task)).Int("attempt", w.launch.Attempt).Logger()
	w.deps.Logs.Own(int64(w.launch.Task), w.rec.User)
	out, err := w.deps.Logs.Writer(int64(w.launch.Task), w.launch.Attempt)
	if err != nil {
		log.Warn().Err(err).Msg("the output cannot be kept")
	}
	id, end := w.execute(ctx, out)
	if ctx.Err() == nil {
		w.mps.Leave(end.class)
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
	err = w.deps.Loop.Do(ctx, w.exited(end))
	failpoint.Hit("worker-end-stored")
	if err == nil {
		w.deps.Energy.Forget(w.key())
	}
	if err != nil || id == "" {
		return
	}
	// The end is durable: the container is no longer needed.
	defer w.removeVacate()
	w.deps.Limiter.Clear(ctx, id)
	if _, err := w.deps.Engine.Retry(ctx, func() error { return w.deps.Driver.Remove(ctx, id) }); err != nil && ctx.Err() == nil {
		log.Warn().Err(err).Str("container", id).Msg("the container could not be removed; it will be at the next start")
	}
}

// execute brings the attempt to its end, from any state of its container. id is empty if
// there is no container to remove.
func (w *worker) execute(ctx context.Context, out *tasklog.Writer) (id string, end ending) {
	var tail containers.Tail
	failpoint.Hit("worker-begins")
	defer func() {
		if w.console != nil {
			w.console()
		}
	}()
	id, err := w.begin(ctx)
	if err != nil {
		return w.clear(ctx, id), w.beginEnding(err)
	}
	if id == "" {
		return "", ending{class: model.ExitStopped, message: "stopped before it started"}
	}
	defer w.deps.Memory.Follow(w.key(), id, w.containerName())()
	defer w.deps.Processes.Add(w.key(), id, w.containerName())()
	failpoint.Hit("worker-begun")
	defer w.openPorts(ctx, id)()
	w.connect(ctx, id)
	w.account()
	if len(w.launch.Grants) > 0 {
		w.deps.Monitor.Watch(w.key(), w.memories(), !w.resumed)
	}
	defer w.followClient(ctx, id)()
	started := w.deps.Clock.Now()
	if err := w.checkGPUs(ctx, id); err != nil { // before the start counts as successful
		return id, w.unstarted(wrongGPUs(err), err.Error())
	}
	w.deps.Loop.Post(loop.Fact(model.Started{At: started, Task: w.launch.Task, Attempt: w.launch.Attempt}))

	failpoint.Hit("worker-start-posted")
	defer w.watchDevices(ctx, id)()
	var done func()
	w.following, done = w.deps.Followers.Add(w.key())
	defer done()
	if driver, ok := engine.As[containers.OutputAttacher](w.deps.Driver); ok {
		defer w.following.Attach(ctx, driver, id, w.rec.Submit.TTY)()
	}
	logged := make(chan struct{})
	logCtx, endLog := context.WithCancel(ctx)
	defer endLog()
	go func() { defer close(logged); w.copyLogs(logCtx, id, out, &tail) }()
	stopping := make(chan struct{})
	stopCtx, endStop := context.WithCancel(ctx)
	w.deps.Running.Go(func() { w.serveSuspend(stopCtx, id) }) // in a goroutine, so that the end of the attempt does not wait for a driver that hangs
	go func() { defer close(stopping); w.stopWhenAsked(stopCtx, id) }()

	exit, outages, err := w.await(ctx, id)
	heard := time.Now()
	byEngine := err == nil && (outages > 0 || w.endedByEngine(ctx, exit, heard)) // the engine is asked at once, because it may answer again soon
	endStop()
	<-stopping
	w.awaitOutput(ctx, logged, out, endLog) // the last output decides the outcome
	if errors.Is(err, containers.ErrNotFound) {
		return id, ending{class: model.ExitInfrastructure, code: 137, message: "its container was removed by somebody else"}
	}
	if err != nil { // the daemon stops
		return id, ending{class: model.ExitInfrastructure, message: err.Error()}
	}
	return id, w.deviceEnding(w.classify(ctx, exit, &tail, byEngine || w.endedByEngine(ctx, exit, heard)))
}

// account starts counting the energy of the attempt. A container that has ended while no
// daemon ran uses none.
func (w *worker) account() {
	stayed := w.adopted != nil && w.adopted.State == containers.StateRunning
	if phase := w.rec.Task.Phase; w.resumed && (phase == model.Suspended || phase == model.Resuming) {
		return
	}
	if w.adopted == nil || w.adopted.State != containers.StateExited {
		w.deps.Energy.Start(w.deps.Clock.Now(), w.key(), w.rec.User, w.uuids(), stayed)
	}
}

// await returns the end of the container, or ErrNotFound if it is gone. After any other
// error the container counts as running, and the engine is asked again. outages counts how
// often the engine did not answer.
func (w *worker) await(ctx context.Context, id string) (exit containers.Exit, outages int, err error) {
	gone := false
	err = w.deps.Engine.Insist(ctx, func() error {
		n, err := w.deps.Engine.Retry(ctx, func() (err error) { exit, err = w.deps.Driver.Wait(ctx, id); return err })
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
func (w *worker) begin(ctx context.Context) (id string, err error) {
	if w.stopRequested() && !w.resumed {
		return "", nil
	}
	if err := w.deps.Engine.WaitAnswer(ctx); err != nil {
		return "", err
	}
	if w.resumed {
		c, err := w.find(ctx)
		if err != nil || c != nil {
			return w.adopt(ctx, c, err)
		}
		if w.hasStarted() {
			return "", errGone
		}
		if w.stopRequested() {
			return "", nil
		}
	}
	if may, err := w.mayCreate(ctx); err != nil || !may {
		return "", err
	}
	if err := mpsFault(w.mps.Join(ctx)); err != nil {
		return "", err
	}
	spec, err := w.spec()
	if err != nil {
		return "", err
	}
	asked := len(w.rec.Submit.Mounts)
	host, placed, err := w.deps.Places.Place(ctx, w.rec, spec.Name, spec.Mounts[:asked], containerfiles.Beside(&spec, asked, len(w.files) > 0))
	defer placed()
	if err != nil {
		return "", err
	}
	if w.rec.Submit.Bare() {
		w.deps.Host.Furnish(&spec, w.rec, host)
	}
	if err := w.deps.Places.Add(&spec, w.files); err != nil {
		return "", err
	}
	if id, err = w.create(ctx, spec); err != nil || id == "" {
		return "", err
	}
	w.onCreated()
	if w.stopRequested() {
		if _, err := w.deps.Engine.Retry(ctx, func() error { return w.deps.Driver.Remove(ctx, id) }); err != nil {
			return id, err
		}
		return "", nil
	}
	if err := w.memory.Limit(ctx, id); err != nil {
		return id, err
	}
	return id, w.startIt(ctx, id)
}

// connect registers the container of the worker's attempt with its terminal or input, if it
// has one. Further calls do nothing.
func (w *worker) connect(ctx context.Context, id string) {
	if w.console != nil {
		return
	}
	sub := &w.rec.Submit
	w.console = w.deps.Consoles.Open(ctx, console.Options{
		Key: w.key(), ID: id, Terminal: sub.TTY, Input: sub.Interactive, Resumed: w.resumed,
		Driver: w.deps.Driver, Logs: w.deps.Logs, Clock: w.deps.Clock, Log: w.deps.Log, Touch: func(ev model.TerminalInput) { w.deps.Loop.Offer(ev) },
	})
}
