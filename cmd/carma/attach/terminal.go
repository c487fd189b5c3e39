package attach

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"syscall"

	"carma/cmd/carma/cli"
	"carma/mapper/model"
	"carma/runner/api"
)

// Terminal is a task in the foreground with a terminal, or an input. It waits for the
// task's start like One, connects, and ends with the task or when the user detaches. It
// reconnects after a lost connection.
type Terminal struct {
	One
	Local
	input *Input
}

// Run returns the finished task, or a *detachedError after the user has detached.
func (a *Terminal) Run(ctx context.Context) (api.Task, error) {
	if a.Input {
		a.input = NewInput(a.In)
	}
	if !a.TTY {
		return a.withInput(ctx)
	}
	patience := cli.NewPatience(a.Console.Say)
	last := 0 // the attempt that has ended
	for {
		task, err := a.await(ctx, last, patience)
		if err != nil || task.Finished() {
			return task, err
		}
		t, err := a.Client.Attach(ctx, strconv.FormatInt(a.Task, 10))
		if status, ok := errors.AsType[*api.StatusError](err); ok && status.Usage() {
			if now, failed := a.Client.Task(ctx, strconv.FormatInt(a.Task, 10)); failed != nil || runs(&now, last) {
				return task, err
			}
			continue // the attempt has ended meanwhile
		}
		if err == nil {
			patience.Answered()
			_, err = a.Talk(ctx, t, a.input, a.Signals, func(s os.Signal) error { return &detachedError{by: s} })
		}
		var cut *errCutOff
		switch {
		case err == nil:
			last = cli.LastAttempt(&task).N
			continue
		case errors.Is(err, errLeft):
			fmt.Fprintln(a.Err) // ends the line of the prompt
			return task, &detachedError{by: keysTyped}
		case errors.As(err, &cut):
			a.Console.Say("%s; carma attach %d takes it again", cut.why, a.Task)
			return task, cli.CodeError(cli.ExitCarma)
		}
		if err := patience.Retry(ctx, err); err != nil {
			return task, err
		}
	}
}

// Finish reports the task's end and returns the error with which to exit.
func (a *Terminal) Finish(task *api.Task, err error) error {
	var detached *detachedError
	if a.TTY && errors.As(err, &detached) && !detached.stopping {
		a.Console.Say("task %d goes on without this terminal: carma attach %d takes it again, carma stop %d ends it", a.Task, a.Task, a.Task)
		return detached.code()
	}
	return a.One.Finish(task, err)
}

// keysTyped is the pseudo-signal that reports typed keys.
const keysTyped = syscall.Signal(0)

// runs reports whether a task has a running attempt after attempt last, which has ended.
func runs(t *api.Task, last int) bool {
	at := cli.LastAttempt(t)
	return at != nil && at.N > last && (t.Phase == string(model.Running) || t.Phase == string(model.Stopping))
}

// await waits until an attempt after the last one runs, or the task has ended. It reports
// the reason for waiting.
func (a *Terminal) await(ctx context.Context, last int, patience *cli.Patience) (task api.Task, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	var helpers sync.WaitGroup
	defer helpers.Wait()
	defer cancel(nil)
	helpers.Go(func() { a.obey(ctx, cancel, fmt.Sprintf("task %d", a.Task), a.stop) })
	told := false
	for {
		err := a.Client.Watch(ctx, strconv.FormatInt(a.Task, 10), func(t api.Task) error {
			patience.Answered()
			if task = t; t.Finished() || runs(&t, last) {
				return api.ErrStop
			}
			a.Console.Status(progress(&t))
			if text := progress(&t); !a.Console.Live && !told && t.Phase != string(model.Launching) && text != "" {
				told = true
				a.Console.Say("task %d is %s", t.ID, cli.Printable(text))
			}
			return nil
		})
		a.Console.Status("")
		var detached *detachedError
		switch {
		case errors.As(context.Cause(ctx), &detached):
			return task, detached
		case err == nil:
			return task, nil
		}
		if err := patience.Retry(ctx, err); err != nil {
			return task, err
		}
	}
}

// withInput shows the output like One, and sends the input in parallel.
func (a *Terminal) withInput(ctx context.Context) (api.Task, error) {
	ctx, cancel := context.WithCancel(ctx)
	var helpers sync.WaitGroup
	if a.Input {
		helpers.Go(func() { a.feed(ctx) })
	}
	task, err := a.One.Run(ctx)
	cancel()
	helpers.Wait()
	return task, err
}

// feed sends the input to the first attempt. A later attempt finds the input at its end.
func (a *Terminal) feed(ctx context.Context) {
	for last := 0; ; {
		var task api.Task
		patience := cli.NewPatience(func(string, ...any) {}) // the follower reports it
		for {
			err := a.Client.Watch(ctx, strconv.FormatInt(a.Task, 10), func(t api.Task) error {
				if task = t; t.Finished() || runs(&t, last) {
					return api.ErrStop
				}
				return nil
			})
			if err == nil {
				break
			}
			if patience.Retry(ctx, err) != nil {
				return
			}
		}
		if task.Finished() {
			return
		}
		t, err := a.Client.Attach(ctx, strconv.FormatInt(a.Task, 10))
		if err == nil {
			if last > 0 {
				a.Console.Say("attempt %d gets no input: what there was has been sent to an earlier one", cli.LastAttempt(&task).N)
				_ = t.Write(api.FrameEnd, nil)
			}
			_, err = a.Talk(ctx, t, a.input, nil, nil)
		}
		if ctx.Err() != nil {
			return
		}
		if err != nil && !cli.Away(err) {
			a.Console.Say("the input cannot be sent: %s", cli.Describe(err))
			return
		}
		if err != nil {
			a.Console.Say("the daemon went away: the input ended there")
		}
		last = cli.LastAttempt(&task).N
	}
}
