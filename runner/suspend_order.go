package runner

import (
	"context"
	"errors"
	"slices"
	"sync"

	"carma/containers"
	"carma/mapper/model"
	"carma/runner/suspend"
)

// suspendOrder is the core's order to suspend or resume an attempt. Either suspend or
// resume is set. again is set if an earlier daemon may have begun the order.
type suspendOrder struct {
	suspend *model.Suspend
	resume  *model.Resume
	again   bool
}

// suspension is the suspension state of an attempt.
type suspension struct {
	orders chan suspendOrder // the core waits for an answer, so there is at most one
	over   chan struct{}     // closed when no further order is carried out

	mu      sync.Mutex
	process suspend.Process // the suspended process, or zero if unknown
	touched bool            // the container may be frozen
	grants  []model.Grant   // grants after a resume on other GPUs, or nil before one
	lost    string          // why the attempt must end, or ""
}

// begin initializes the suspension state of an attempt whose task is in a phase.
func (a *suspension) begin(phase model.Phase) {
	a.orders, a.over = make(chan suspendOrder, 1), make(chan struct{})
	a.touched = phase == model.Suspending || phase == model.Suspended || phase == model.Resuming || phase == model.Stopping
}

// order hands an order to the worker of a task. Only the loop calls it.
func (r *Runner) order(task model.TaskID, o suspendOrder) {
	w := r.workers[task]
	if w == nil {
		return // the attempt is ending
	}
	select {
	case w.aside.orders <- o:
	default:
		r.Log.Error().Int64("task", int64(task)).Msg("an order to suspend or resume was dropped: the one before has no answer yet")
	}
}

// orderAgain returns the last order of an earlier daemon for a task. ok is false if there
// was none.
func orderAgain(t *model.Task) (o suspendOrder, ok bool) {
	a, away := t.Alive(), t.Suspension
	if a == nil || away == nil {
		return o, false
	}
	switch t.Phase {
	case model.Suspending:
		return suspendOrder{suspend: &model.Suspend{Task: t.ID, Attempt: a.N, Host: away.Host, Leave: away.InPlace, Reason: away.Reason}, again: true}, true
	case model.Resuming:
		from := make([]model.GPUID, len(away.From))
		for i, g := range away.From {
			from[i] = g.GPU
		}
		return suspendOrder{resume: &model.Resume{Task: t.ID, Attempt: a.N, From: from, Grants: slices.Clone(a.Grants)}, again: true}, true
	}
	return o, false
}

// serveSuspend carries out the orders of an attempt until ctx ends or the attempt must
// stop.
func (w *worker) serveSuspend(ctx context.Context, id string) {
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
	w.detectSuspended(ctx, id)
	look, stop := w.watchVacateOffer()
	defer stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look:
			if w.reportVacateOffer() {
				look = nil
			}
		case <-w.resizing.asked:
			w.resize(ctx, id)
		case o := <-w.aside.orders:
			w.touch()
			if o.suspend != nil {
				w.suspend(ctx, id, *o.suspend, o.again || o.suspend.Reason.Code == model.ReasonFoundAway)
			} else {
				w.serveResume(ctx, id, *o.resume, o.again)
			}
		}
	}
}

func (w *worker) isTouched() bool {
	w.aside.mu.Lock()
	defer w.aside.mu.Unlock()
	return w.aside.touched
}

func (w *worker) touch() {
	w.aside.mu.Lock()
	defer w.aside.mu.Unlock()
	w.aside.touched = true
}

// grants returns the current grants of the attempt.
func (w *worker) grants() []model.Grant {
	w.aside.mu.Lock()
	defer w.aside.mu.Unlock()
	if w.aside.grants != nil {
		return w.aside.grants
	}
	return w.launch.Grants
}

// lostWhy returns why a suspended attempt must end, or "" if it need not.
func (w *worker) lostWhy() string {
	w.aside.mu.Lock()
	defer w.aside.mu.Unlock()
	return w.aside.lost
}

// lose ends an attempt that can neither run nor be resumed.
func (w *worker) lose(ctx context.Context, id string, err error) {
	w.aside.mu.Lock()
	w.aside.lost = failureText(err)
	w.aside.mu.Unlock()
	w.deps.Log.Error().Err(err).Int64("task", int64(w.launch.Task)).Msg("the task is lost; it starts again")
	if err := w.kill(ctx, id); err != nil && ctx.Err() == nil && !errors.Is(err, containers.ErrNotFound) {
		w.deps.Log.Error().Err(err).Int64("task", int64(w.launch.Task)).Msg("the lost task could not be killed")
	}
}

// thawIfFrozen thaws the container of an attempt that is being stopped, because frozen
// threads receive no signal.
func (w *worker) thawIfFrozen(ctx context.Context, id string) {
	if w.isTouched() {
		w.deps.Thaw(ctx, id, w.containerName())
	}
}

// Thaw thaws a container that may have been suspended.
func (d *attemptDeps) Thaw(ctx context.Context, id, name string) {
	if d.Suspending == nil {
		return
	}
	short, cancel := context.WithTimeout(ctx, signalLimit)
	defer cancel()
	if err := d.Suspending.By.Thaw(short, suspend.FindContainer(d.Processes.Root(), id, name)); err != nil && ctx.Err() == nil {
		d.Log.Warn().Err(err).Str("container", name).Msg("the frozen container could not be thawed; it is tried again")
	}
}
