package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"

	"carma/mapper"
	"carma/runner/api"
)

// stopSignals are those that stop an attached task. A hang-up is not one of
// them: a task outlives the terminal it was submitted from.
func stopSignals() (chan os.Signal, func()) {
	c := make(chan os.Signal, 4)
	signal.Notify(c, os.Interrupt, syscall.SIGTERM)
	return c, func() { signal.Stop(c) }
}

// detachedError ends an attached run whose task goes on.
type detachedError struct{ by os.Signal }

func (e *detachedError) Error() string { return "detached by " + e.by.String() }

// attached is carma run in the foreground: it shows a task's output, passes
// Ctrl-C on, and ends when the task does.
type attached struct {
	client  *api.Client
	task    int64
	console *console
	signals <-chan os.Signal
}

// run returns the finished task; a *detachedError when the user has left.
func (a *attached) run(ctx context.Context) (api.Task, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	var helpers sync.WaitGroup
	defer helpers.Wait()
	defer cancel(nil)
	helpers.Go(func() { a.obey(ctx, cancel, fmt.Sprintf("task %d", a.task), a.stop) })
	if a.console.live {
		helpers.Go(func() { a.watch(ctx) })
	}
	f := &follower{
		client: a.client, task: a.task, options: api.LogOptions{Follow: true},
		print: a.console.line, patience: newPatience(a.console.say),
	}
	task, err := f.run(ctx)
	a.console.status("")
	var detached *detachedError
	if errors.As(context.Cause(ctx), &detached) {
		return task, detached
	}
	return task, err
}

// obey calls stop at the first signal and detaches at the second. what names the
// tasks in messages.
func (a *attached) obey(ctx context.Context, cancel context.CancelCauseFunc, what string, stop func(context.Context, api.StopRequest) error) {
	var stopping sync.WaitGroup
	defer stopping.Wait()
	for first := true; ; first = false {
		select {
		case <-ctx.Done():
			return
		case s := <-a.signals:
			a.console.echoed()
			if !first {
				cancel(&detachedError{s})
				return
			}
			a.console.say("stopping %s; press Ctrl-C again to detach", what)
			stopping.Go(func() {
				quiet := newPatience(func(string, ...any) {}) // the follower says it
				err := quiet.do(ctx, func() error { return stop(ctx, api.StopRequest{Reason: "stopped with Ctrl-C"}) })
				if err != nil && ctx.Err() == nil {
					a.console.say("%s cannot be stopped: %s", what, oneLine(describe(err)))
				}
			})
		}
	}
}

// stop asks for the task to end.
func (a *attached) stop(ctx context.Context, r api.StopRequest) error {
	_, err := a.client.Stop(ctx, strconv.FormatInt(a.task, 10), r)
	return err
}

// watch keeps the status line.
func (a *attached) watch(ctx context.Context) {
	for ctx.Err() == nil {
		_ = a.client.Watch(ctx, strconv.FormatInt(a.task, 10), func(t api.Task) error {
			a.console.status(progress(&t))
			return nil
		})
		select {
		case <-ctx.Done():
		case <-time.After(time.Second): // the daemon restarts; the follower says so
		}
	}
}

// progress is the status line of a task that does not run yet.
func progress(t *api.Task) string {
	switch mapper.Phase(t.Phase) {
	case mapper.Estimating:
		return cmp.Or(t.Waits, "estimating its memory")
	case mapper.Launching:
		if at := last(t); at != nil && len(at.GPUs) > 0 {
			return "starting on " + onGPUs(at.GPUs)
		}
		return "starting"
	case mapper.Held:
		return "held: " + t.Waits
	case mapper.Queued, mapper.Recovering:
		text := t.Phase
		if t.Position > 0 {
			text += ", " + ordinal(t.Position)
		}
		if t.Waits != "" {
			text += "; waits because: " + t.Waits
		}
		return text
	}
	return ""
}

// finish tells how an attached run ended and returns the error to exit with.
func (a *attached) finish(task *api.Task, err error) error {
	var detached *detachedError
	switch {
	case errors.As(err, &detached):
		a.console.say("task %d goes on without this terminal: carma logs -f %d", a.task, a.task)
		if detached.by == syscall.SIGTERM {
			return codeError(128 + int(syscall.SIGTERM))
		}
		return codeError(exitDetached)
	case away(err):
		a.console.say("the daemon does not come back; the task goes on without it: carma logs -f %d", a.task)
		return codeError(exitCarma)
	case err != nil:
		return err
	}
	if task.Phase != string(mapper.Succeeded) {
		a.console.say("task %d %s", a.task, printable(ending(task)))
	}
	if code := taskCode(task); code != exitOK {
		return codeError(code)
	}
	return nil
}
