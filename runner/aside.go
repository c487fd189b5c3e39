package runner

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"carma/containers"
	"carma/mapper"
	"carma/mapper/units"
	"carma/runner/suspend"
	"carma/test/failpoint"
)

// asideOrder is what the core wants of an attempt that is to be suspended, or to come
// back: one of Suspend and Resume. Again: an earlier daemon may have begun.
type asideOrder struct {
	suspend *mapper.Suspend
	resume  *mapper.Resume
	again   bool
}

// aside is where an attempt is between its GPUs and host memory.
type aside struct {
	orders chan asideOrder // the core waits for an answer, so there is at most one
	over   chan struct{}   // closed when no order is carried out any more

	mu      sync.Mutex
	process suspend.Process // that was suspended; zero: not known
	touched bool            // its container may be frozen
	grants  []mapper.Grant  // since it came back elsewhere; nil: as launched
	lost    string          // why it must end; empty: it must not
}

// begin readies it for an attempt whose task is in a phase.
func (a *aside) begin(phase mapper.Phase) {
	a.orders, a.over = make(chan asideOrder, 1), make(chan struct{})
	a.touched = phase == mapper.Suspending || phase == mapper.Away || phase == mapper.Resuming || phase == mapper.Stopping
}

// order hands an order to the worker of a task. Only the loop calls it.
func (r *Runner) order(task mapper.TaskID, o asideOrder) {
	w := r.workers[task]
	if w == nil {
		return // its attempt ends
	}
	select {
	case w.aside.orders <- o:
	default:
		r.Log.Error().Int64("task", int64(task)).Msg("an order to suspend or resume was dropped: the one before has no answer yet")
	}
}

// orderAgain is what an earlier daemon had to do last for a task; ok is false if there
// was nothing.
func orderAgain(t *mapper.Task) (o asideOrder, ok bool) {
	a, away := t.Alive(), t.Suspension
	if a == nil || away == nil {
		return o, false
	}
	switch t.Phase {
	case mapper.Suspending:
		return asideOrder{suspend: &mapper.Suspend{Task: t.ID, Attempt: a.N, Host: away.Host}, again: true}, true
	case mapper.Resuming:
		from := make([]mapper.GPUID, len(away.From))
		for i, g := range away.From {
			from[i] = g.GPU
		}
		return asideOrder{resume: &mapper.Resume{Task: t.ID, Attempt: a.N, From: from, Grants: slices.Clone(a.Grants)}, again: true}, true
	}
	return o, false
}

// stepAside carries out the orders of an attempt until ctx ends or it is to stop.
func (w *worker) stepAside(ctx context.Context, id string) {
	defer close(w.aside.over)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-w.stop.asked:
			cancel()
		case <-ctx.Done():
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return
		case o := <-w.aside.orders:
			w.touch()
			if o.suspend != nil {
				w.suspend(ctx, id, *o.suspend, o.again)
			} else {
				w.comeBack(ctx, id, *o.resume, o.again)
			}
		}
	}
}

func (w *worker) touch() {
	w.aside.mu.Lock()
	defer w.aside.mu.Unlock()
	w.aside.touched = true
}

// grants are those that the attempt has now.
func (w *worker) grants() []mapper.Grant {
	w.aside.mu.Lock()
	defer w.aside.mu.Unlock()
	if w.aside.grants != nil {
		return w.aside.grants
	}
	return w.launch.Grants
}

// lostWhy is why the attempt must end; empty: it must not.
func (w *worker) lostWhy() string {
	w.aside.mu.Lock()
	defer w.aside.mu.Unlock()
	return w.aside.lost
}

// facts are what is known of a task that is to be suspended.
func (w *worker) facts(bytes units.Bytes) suspend.Facts {
	o := w.opt.Suspending
	f := suspend.Facts{Driver: o.Driver, Arch: o.Arch, Uses: w.monitor.uses(), MPS: w.mpsGroup() != nil, Bytes: int64(bytes)}
	for _, g := range w.grants() {
		f.MIG = f.MIG || w.found[g.GPU].Parent != ""
	}
	return f
}

// suspend takes the attempt off its GPUs and answers the core, always.
func (w *worker) suspend(ctx context.Context, id string, d mapper.Suspend, again bool) {
	answer := func(failure string) {
		w.post(fact(mapper.Suspended{At: w.Clock.Now(), Task: d.Task, Attempt: d.Attempt, Failure: failure}))
	}
	if w.opt.Suspending == nil {
		answer("this daemon cannot suspend programs")
		return
	}
	c := w.container(id)
	if err := w.setMemory(ctx, id, d.Host); err != nil && !again {
		answer(err.Error())
		return
	}
	failpoint.Hit("suspend-begins")
	res, err := w.takeOff(ctx, c, w.facts(d.Host), again)
	failpoint.Hit("suspend-done")
	log := w.Log.Info().Int64("task", int64(d.Task)).Int("attempt", d.Attempt).Stringer("outcome", res.Outcome)
	switch res.Outcome {
	case suspend.Suspended:
		w.aside.mu.Lock()
		w.aside.process = res.Process
		w.aside.mu.Unlock()
		w.energy.leave(w.Clock.Now(), w.key())
		log.Dur("lock", res.Took[suspend.CallLock]).Dur("copy", res.Took[suspend.CallCheckpoint]).Msg("suspended")
		answer("")
	case suspend.Lost:
		w.lose(ctx, id, err)
	default:
		log.Err(err).Msg("not suspended")
		_ = w.setMemory(ctx, id, 0)
		answer(failureText(err))
	}
}

// failureText is an error of package suspend for people. It is never empty: that would
// be no failure.
func failureText(err error) string {
	if refusal, ok := errors.AsType[*suspend.Refusal](err); ok {
		return refusal.Text
	}
	if err == nil {
		return "nobody knows why"
	}
	return err.Error()
}

// askAgain is the pause after the driver could not be asked what became of a task.
const askAgain = 5 * time.Second

// takeOff suspends a container. While the driver cannot be asked how it ended, it asks
// again: the task may be off its GPU, or on it.
func (w *worker) takeOff(ctx context.Context, c suspend.Container, f suspend.Facts, again bool) (res suspend.Result, err error) {
	by := w.opt.Suspending.By
	if !again {
		res, err = by.Suspend(ctx, c, f)
		again = res.Outcome == suspend.Lost && isUnavailable(err)
	}
	for again {
		res, err = by.Recover(ctx, c, suspend.Suspended, f, suspend.Target{})
		if again = isUnavailable(err) && ctx.Err() == nil; again {
			w.Log.Warn().Err(err).Int64("task", int64(w.launch.Task)).Msg("it is not known whether the task is suspended; the driver is asked again")
			rest(ctx, askAgain)
		}
	}
	return res, err
}

// rest waits for a time, or until ctx ends.
func rest(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// comeBack puts the attempt on GPUs and answers the core, always.
func (w *worker) comeBack(ctx context.Context, id string, d mapper.Resume, again bool) {
	answer := func(failure string) {
		w.post(fact(mapper.Resumed{At: w.Clock.Now(), Task: d.Task, Attempt: d.Attempt, Failure: failure}))
	}
	if w.opt.Suspending == nil {
		answer("this daemon cannot resume programs; stop the task, or start the daemon with the GPUs that it had")
		return
	}
	c := w.container(id)
	w.limitOn(ctx, id, c, d)
	failpoint.Hit("resume-begins-aside")
	res, err := w.putBack(ctx, c, d, again)
	failpoint.Hit("resume-done-aside")
	log := w.Log.Info().Int64("task", int64(d.Task)).Int("attempt", d.Attempt).Stringer("outcome", res.Outcome)
	switch {
	case res.Outcome == suspend.Runs, res.Outcome == suspend.Ended: // what is left of it runs
		w.aside.mu.Lock()
		w.aside.grants, w.aside.process = slices.Clone(d.Grants), suspend.Process{}
		w.aside.mu.Unlock()
		w.energy.join(w.Clock.Now(), w.key(), w.rec.User, w.uuids(), false)
		_ = w.setMemory(ctx, id, 0)
		log.Strs("grants", grantWords(d.Grants)).Dur("copy", res.Took[suspend.CallRestore]).Msg("resumed")
		answer("")
	case res.Outcome == suspend.Lost && !isUnavailable(err):
		w.lose(ctx, id, err)
	default:
		log.Err(err).Msg("not resumed")
		answer(failureText(err))
	}
}

// putBack resumes a container.
func (w *worker) putBack(ctx context.Context, c suspend.Container, d mapper.Resume, again bool) (suspend.Result, error) {
	by, target := w.opt.Suspending.By, w.target(d)
	w.aside.mu.Lock()
	p := w.aside.process
	w.aside.mu.Unlock()
	if !again && p.PID != 0 {
		res, err := by.Resume(ctx, c, p, target)
		if refusal, ok := errors.AsType[*suspend.Refusal](err); !ok || refusal.Reason != suspend.ReasonUnknown {
			return res, err
		}
		// It has ended while it was frozen; others of the container are to go on.
	}
	return by.Recover(ctx, c, suspend.Runs, w.facts(0), target)
}

// target is where a resumed attempt goes.
func (w *worker) target(d mapper.Resume) suspend.Target {
	t := suspend.Target{Driver: w.opt.Suspending.Driver}
	for i, g := range d.Grants {
		if i < len(d.From) && d.From[i] != g.GPU {
			t.Pairs = append(t.Pairs, suspend.Pair{Old: string(d.From[i]), New: string(g.GPU)})
		}
	}
	_ = w.look(context.Background(), func(s *mapper.State) {
		if task, ok := s.Task(d.Task); ok && task.Suspension != nil {
			t.Bytes = int64(task.Suspension.Host)
		}
	})
	return t
}

// lose ends an attempt that can neither run nor be resumed.
func (w *worker) lose(ctx context.Context, id string, err error) {
	w.aside.mu.Lock()
	w.aside.lost = failureText(err)
	w.aside.mu.Unlock()
	w.Log.Error().Err(err).Int64("task", int64(w.launch.Task)).Msg("the task is lost; it starts again")
	if err := w.kill(ctx, id); err != nil && ctx.Err() == nil && !errors.Is(err, containers.ErrNotFound) {
		w.Log.Error().Err(err).Int64("task", int64(w.launch.Task)).Msg("the lost task could not be killed")
	}
}

// setMemory sets the limit of the container's memory to its own and more.
func (w *worker) setMemory(ctx context.Context, id string, more units.Bytes) error {
	var spec containers.Spec
	w.live().Bounds.bound(&spec, w.rec.Submit, w.launch.Host)
	resizer, can := able[containers.Resizer](w.Driver)
	switch {
	case spec.Memory == 0:
		return nil
	case !can:
		return errors.New("the limit of its container's memory cannot be raised on " + w.Driver.Name())
	}
	err := within(ctx, killLimit, "set the memory of a container", func(ctx context.Context) error {
		return resizer.SetMemory(ctx, id, spec.Memory+int64(more))
	})
	if err != nil && ctx.Err() == nil {
		w.Log.Warn().Err(err).Int64("task", int64(w.launch.Task)).Msg("the limit of its container's memory could not be set")
	}
	return err
}

// limitOn has the driver limit the attempt on the GPUs to which it comes back.
func (w *worker) limitOn(ctx context.Context, id string, c suspend.Container, d mapper.Resume) {
	before := w.grants()
	w.aside.mu.Lock()
	w.aside.grants = slices.Clone(d.Grants)
	w.aside.mu.Unlock()
	gpus := w.limited()
	if len(gpus) == 0 || len(c.PIDs) == 0 || slices.Equal(before, d.Grants) {
		return
	}
	if err := w.keepTo(ctx, id, c.PIDs[0], gpus); err != nil && ctx.Err() == nil {
		w.Log.Warn().Err(err).Int64("task", int64(w.launch.Task)).Msg("the driver does not limit the task's GPU memory where it comes back to")
	}
}

// thawIfFrozen lets the threads of the container run that is to be stopped: frozen ones
// take no signal.
func (w *worker) thawIfFrozen(ctx context.Context, id string) {
	w.aside.mu.Lock()
	touched := w.aside.touched
	w.aside.mu.Unlock()
	if touched {
		w.Runner.thaw(ctx, id, w.containerName(w.launch.Task, w.launch.Attempt))
	}
}

// thaw lets the threads of a container run that may have been suspended.
func (r *Runner) thaw(ctx context.Context, id, name string) {
	if r.opt.Suspending == nil {
		return
	}
	short, cancel := context.WithTimeout(ctx, signalLimit)
	defer cancel()
	if err := r.opt.Suspending.By.Thaw(short, r.owners.container(id, name)); err != nil && ctx.Err() == nil {
		r.Log.Warn().Err(err).Str("container", name).Msg("the frozen container could not be thawed; it is tried again")
	}
}
