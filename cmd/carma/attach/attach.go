// Package attach follows tasks: it shows their output, forwards Ctrl-C, and waits for
// their end, across restarts of the daemon.
package attach

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"carma/cmd/carma/cli"
	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/api"
)

// detachedError ends an attached run before its task has ended.
type detachedError struct {
	by       os.Signal
	stopping bool // a stop of the task was requested
}

func (e *detachedError) Error() string { return "detached by " + e.by.String() }

// code returns the error with which to exit.
func (e *detachedError) code() error {
	switch e.by {
	case syscall.SIGQUIT, keysTyped:
		return nil
	case syscall.SIGTERM:
		return cli.CodeError(128 + int(syscall.SIGTERM))
	}
	return cli.CodeError(cli.ExitDetached)
}

// One is a task in the foreground: it shows a task's output, forwards Ctrl-C, and ends
// when the task does.
type One struct {
	Client  *api.Client
	Task    int64
	Console *cli.Console
	Signals <-chan os.Signal
}

// Run returns the finished task, or a *detachedError after the user has detached.
func (a *One) Run(ctx context.Context) (api.Task, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	var helpers sync.WaitGroup
	defer helpers.Wait()
	defer cancel(nil)
	helpers.Go(func() { a.obey(ctx, cancel, fmt.Sprintf("task %d", a.Task), a.stop) })
	if a.Console.Live {
		helpers.Go(func() { a.watch(ctx) })
	}
	f := &Follower{
		Client: a.Client, Task: a.Task, Options: api.LogOptions{Follow: true},
		Print: a.Console.Line, Patience: cli.NewPatience(a.Console.Say),
	}
	task, err := f.Run(ctx)
	a.Console.Status("")
	var detached *detachedError
	if errors.As(context.Cause(ctx), &detached) {
		return task, detached
	}
	return task, err
}

// patienceToStop is the time for which a user who detaches waits for the answer to an
// earlier stop request.
const patienceToStop = 5 * time.Second

// obey stops the tasks at Ctrl-C or SIGTERM. At a second one it returns as soon as the
// daemon has accepted the stop. SIGQUIT (Ctrl-\) leaves the tasks running. what is their
// name in messages.
func (a *One) obey(ctx context.Context, cancel context.CancelCauseFunc, what string, stop func(context.Context, api.StopRequest) error) {
	asking, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	var taken chan struct{} // closed when the stop was answered, or nil without a request
	for {
		select {
		case <-ctx.Done():
			return
		case s := <-a.Signals:
			a.Console.Echoed()
			if taken != nil {
				wait(taken, patienceToStop)
			}
			if taken != nil || s == syscall.SIGQUIT {
				cancel(&detachedError{by: s, stopping: taken != nil})
				return
			}
			a.Console.Say("stopping %s; Ctrl-C again returns at once, and does not call that off", what)
			taken = make(chan struct{})
			go func() {
				defer close(taken)
				quiet := cli.NewPatience(func(string, ...any) {}) // the follower reports it
				err := quiet.Do(asking, func() error { return stop(asking, api.StopRequest{Reason: "stopped with Ctrl-C"}) })
				if err != nil && ctx.Err() == nil {
					a.Console.Say("%s cannot be stopped: %s", what, cli.Describe(err))
				}
			}()
		}
	}
}

// wait waits until a channel is closed, at most for a time limit.
func wait(c <-chan struct{}, limit time.Duration) {
	select {
	case <-c:
	case <-time.After(limit):
	}
}

// stop requests the end of the task.
func (a *One) stop(ctx context.Context, r api.StopRequest) error {
	_, err := a.Client.Stop(ctx, strconv.FormatInt(a.Task, 10), r)
	return err
}

// watch updates the status line.
func (a *One) watch(ctx context.Context) {
	for ctx.Err() == nil {
		_ = a.Client.Watch(ctx, strconv.FormatInt(a.Task, 10), func(t api.Task) error {
			a.Console.Status(progress(&t))
			return nil
		})
		select {
		case <-ctx.Done():
		case <-time.After(time.Second): // the daemon restarts; the follower prints a message
		}
	}
}

// progress returns the status line of a task that does not run yet.
func progress(t *api.Task) string {
	switch model.Phase(t.Phase) {
	case model.Estimating:
		return cmp.Or(t.Waits, "estimating its memory")
	case model.Launching:
		if at := cli.LastAttempt(t); at != nil && len(at.GPUs) > 0 {
			return "starting on " + cli.OnGPUs(at.GPUs)
		}
		return "starting"
	case model.Held:
		return "held: " + t.Waits
	case model.Running:
		if t.Idle != nil {
			return cli.IdleText(t.Idle)
		}
	case model.Suspending, model.Suspended, model.Resuming:
		return Aside(t)
	case model.Queued, model.Recovering:
		text := t.Phase
		if t.Position > 0 {
			text += ", " + cli.Ordinal(t.Position)
		}
		if t.Waits != "" {
			text += "; waits because: " + t.Waits
		}
		return text
	}
	return ""
}

// Aside describes the state of a task that is suspended, or about to be: "suspended by
// ann: room for the demo; 20.1 GiB in host memory; carma resume 17 brings it back".
func Aside(t *api.Task) string {
	s := t.Suspension
	switch {
	case s == nil:
		return t.Phase
	case t.Phase == string(model.Resuming):
		return "coming back to its GPU"
	case s.Stopping:
		return "suspended, and being stopped"
	}
	by, size := cmp.Or(s.By, "carma"), units.Bytes(s.Host).String()
	if s.Why != "" {
		by += ": " + s.Why
	}
	if t.Phase == string(model.Suspending) {
		return fmt.Sprintf("being suspended by %s; %s go to host memory", by, size)
	}
	text := fmt.Sprintf("suspended by %s; %s in host memory; ", by, size)
	switch {
	case s.HeldBy != "":
		return text + fmt.Sprintf("held by %s, carma release %d", s.HeldBy, t.ID)
	case !s.Back:
		return text + fmt.Sprintf("carma resume %d brings it back", t.ID)
	case t.Waits != "":
		return text + "back when there is room: " + t.Waits
	}
	return text + "back when there is room"
}

// Finish reports the end of an attached run and returns the error with which to exit.
func (a *One) Finish(task *api.Task, err error) error {
	var detached *detachedError
	switch {
	case errors.As(err, &detached):
		if detached.stopping {
			a.Console.Say("task %d is being stopped: carma logs -f %d", a.Task, a.Task)
		} else {
			a.Console.Say("task %d goes on without this terminal: carma logs -f %d shows it, carma stop %d ends it", a.Task, a.Task, a.Task)
		}
		return detached.code()
	case cli.Away(err):
		a.Console.Say("the daemon does not come back; the task goes on without it: carma logs -f %d", a.Task)
		return cli.CodeError(cli.ExitCarma)
	case err != nil:
		return err
	}
	if task.Phase != string(model.Succeeded) {
		a.Console.Say("task %d %s", a.Task, cli.Printable(cli.Ending(task)))
	}
	if code := cli.TaskCode(task); code != cli.ExitOK {
		return cli.CodeError(code)
	}
	return nil
}
