package leave

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"carma/runner/suspend"
)

// By suspends containers: a [suspend.Suspender], or a stand-in for tests.
type By interface {
	Suspend(ctx context.Context, c suspend.Container, f suspend.Facts) (suspend.Result, error)
	Resume(ctx context.Context, c suspend.Container, p suspend.Process, t suspend.Target) (suspend.Result, error)
	Recover(ctx context.Context, c suspend.Container, want suspend.Outcome, f suspend.Facts, t suspend.Target) (suspend.Result, error)
	Thaw(ctx context.Context, c suspend.Container) error
	Frozen(ctx context.Context, c suspend.Container) (bool, error)
}

// Defaults of Asking.
const (
	// defaultLimit is the time that a program has for its step and for copying. The copies
	// of the driver have half a minute and more (suspend.CopyLimit).
	defaultLimit = time.Minute
	// poll is the time between two checks for an answer. The kernel cannot notify about an
	// answer if a container's files are not on the machine's own file system.
	poll = 20 * time.Millisecond
)

// Asking asks tasks that offer it to vacate their GPUs; tasks that do not offer it or do
// not answer in time are left to Driver. It is a [By]. A task that has vacated is not
// frozen.
//
// Outcomes are as in package suspend. GPU memory of the program beside its tensors, such
// as its CUDA context, stays on the GPU: measure this memory before allocating the rest
// to other tasks.
type Asking struct {
	Driver By
	Limit  time.Duration // longest time for a step and for copying; 0 means a minute
}

var _ By = (*Asking)(nil)

// errSlow means that the program has not answered.
var errSlow = errors.New("the task did not answer in time")

// errEnded means that no process of the container is left.
var errEnded = errors.New("the task has ended")

// refusedError is a program's reason for a refusal.
type refusedError struct{ why string }

func (e *refusedError) Error() string {
	return "the task cannot do so: " + strconv.Quote(e.why)
}

// offers returns the folder of a container whose task vacates on request.
func (a *Asking) offers(c suspend.Container) (Folder, bool) {
	f := Folder(c.Leave)
	return f, f != "" && f.Offered()
}

// ask writes an order and waits for the answer.
func (a *Asking) ask(ctx context.Context, c suspend.Container, f Folder, leave bool) error {
	o, err := f.give(leave)
	if err != nil {
		return fmt.Errorf("ask the task to leave its GPU, or to return: %w", err)
	}
	limit := a.Limit
	if limit <= 0 {
		limit = defaultLimit
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errSlow)
	defer cancel()
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		switch word, why, ok := f.answer(o); {
		case ok && (word == left && leave || word == here && !leave):
			return nil
		case ok:
			return &refusedError{why}
		case !lives(c):
			return errEnded
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// lives reports whether a process of the container is left, or none is known.
func lives(c suspend.Container) bool {
	for _, pid := range c.PIDs {
		if _, ok := suspend.ProcessOf(pid); ok {
			return true
		}
	}
	return len(c.PIDs) == 0
}

// Suspend asks a task that offers it to vacate. If it cannot, or does not answer, it is
// ordered to stay, and the driver suspends it, which works at any point of the program.
func (a *Asking) Suspend(ctx context.Context, c suspend.Container, facts suspend.Facts) (suspend.Result, error) {
	f, ok := a.offers(c)
	if !ok {
		return a.Driver.Suspend(ctx, c, facts)
	}
	err := a.ask(ctx, c, f, true)
	switch {
	case err == nil:
		return suspend.Result{Outcome: suspend.Suspended}, nil
	case errors.Is(err, errEnded):
		return suspend.Result{Outcome: suspend.Ended}, err
	}
	if _, e := f.give(false); e != nil {
		return suspend.Result{Outcome: suspend.Runs}, errors.Join(err, e)
	}
	if ctx.Err() != nil {
		return suspend.Result{Outcome: suspend.Runs}, err
	}
	result, failed := a.Driver.Suspend(ctx, c, facts)
	if failed != nil {
		failed = fmt.Errorf("%w; before, it was asked to leave by itself: %w", failed, err)
	}
	return result, failed
}

// away reports whether the last order to a task was to vacate.
func (a *Asking) away(c suspend.Container) (Folder, bool) {
	f, ok := a.offers(c)
	if !ok {
		return f, false
	}
	return f, f.Left()
}

// Resume asks a task that vacated its GPU to return. It can return only to the GPU that it
// had, because it sees no other.
func (a *Asking) Resume(ctx context.Context, c suspend.Container, p suspend.Process, t suspend.Target) (suspend.Result, error) {
	if f, ok := a.away(c); ok && p.PID == 0 { // PID is set if the driver suspended the process
		return a.back(ctx, c, f, t)
	}
	return a.Driver.Resume(ctx, c, p, t)
}

// back asks a task to return. If it cannot, or does not answer, back orders it to stay
// suspended.
func (a *Asking) back(ctx context.Context, c suspend.Container, f Folder, t suspend.Target) (suspend.Result, error) {
	for _, p := range t.Pairs {
		if p.Old != p.New {
			return suspend.Result{Outcome: suspend.Suspended}, &suspend.Refusal{
				Reason: suspend.ReasonGPU, Text: "the task left its GPU by itself, so it comes back to that one alone",
			}
		}
	}
	err := a.ask(ctx, c, f, false)
	switch {
	case err == nil:
		return suspend.Result{Outcome: suspend.Runs}, nil
	case errors.Is(err, errEnded):
		return suspend.Result{Outcome: suspend.Ended}, err
	}
	if _, e := f.give(true); e != nil {
		err = errors.Join(err, e)
	}
	return suspend.Result{Outcome: suspend.Suspended}, err
}

// Recover finishes an operation that a daemon that died has begun. Its orders to a task
// that vacates on request are in the task's folder, where the program may have executed
// them meanwhile. If the driver may have suspended the task, the driver lets it run
// first.
func (a *Asking) Recover(ctx context.Context, c suspend.Container, want suspend.Outcome, facts suspend.Facts, t suspend.Target) (suspend.Result, error) {
	f, ok := a.offers(c)
	if !ok {
		return a.Driver.Recover(ctx, c, want, facts, t)
	}
	last, err := f.order()
	if err != nil {
		return a.Driver.Recover(ctx, c, want, facts, t)
	}
	away := last.n > 0 && (last.leave || f.isAway(last))
	// A program that answered too late may have left before the driver also suspended it.
	if driver := facts.Possible(false) == nil && !facts.MPS; driver && !last.leave && (last.n > 0 || want == suspend.Runs) {
		result, err := a.Driver.Recover(ctx, c, suspend.Runs, facts, t)
		if err != nil || result.Outcome != suspend.Runs {
			return result, err
		}
	}
	switch {
	case want == suspend.Suspended:
		return a.Suspend(ctx, c, facts)
	case away:
		return a.back(ctx, c, f, t)
	}
	return suspend.Result{Outcome: suspend.Runs}, nil
}

// Thaw thaws a container that the driver's suspend has frozen.
func (a *Asking) Thaw(ctx context.Context, c suspend.Container) error { return a.Driver.Thaw(ctx, c) }

// Frozen reports whether a container is frozen. A container whose task has vacated is not
// frozen.
func (a *Asking) Frozen(ctx context.Context, c suspend.Container) (bool, error) {
	return a.Driver.Frozen(ctx, c)
}
