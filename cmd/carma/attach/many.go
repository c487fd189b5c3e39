package attach

import (
	"context"
	"errors"
	"strings"
	"sync"
	"unicode/utf8"

	"carma/cmd/carma/cli"
	"carma/mapper/model"
	"carma/runner/api"
)

// Many is several tasks in the foreground: it shows the output of all, with the task's
// name before each line.
type Many struct {
	One
	Group string
	Tasks []api.Submitted
	// Paint, if not nil, colours the name before a task's lines.
	Paint func(task int, name string) string
}

// followAtMost is the largest number of outputs that are followed at a time. With more
// tasks, the later ones are shown after earlier ones have ended.
const followAtMost = 128

// Run returns the finished tasks, or a *detachedError after the user has detached.
func (c *Many) Run(ctx context.Context) ([]api.Task, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	var helpers sync.WaitGroup
	defer helpers.Wait()
	defer cancel(nil)
	helpers.Go(func() { c.obey(ctx, cancel, "group "+c.Group, c.stop) })
	ends, err := c.Follow(ctx, api.LogOptions{Follow: true})
	var detached *detachedError
	if errors.As(context.Cause(ctx), &detached) {
		return ends, detached
	}
	return ends, err
}

// Follow shows the output of all tasks and returns their states afterwards.
func (c *Many) Follow(ctx context.Context, o api.LogOptions) ([]api.Task, error) {
	width := 0
	for _, t := range c.Tasks {
		width = max(width, min(24, utf8.RuneCountInString(t.Name)))
	}
	ends, errs := make([]api.Task, len(c.Tasks)), make([]error, len(c.Tasks))
	notice, show := c.once(), onceEach(c.Console.Line)
	var followers sync.WaitGroup
	room := make(chan struct{}, followAtMost)
	for i, t := range c.Tasks {
		followers.Go(func() {
			select {
			case room <- struct{}{}:
				defer func() { <-room }()
			case <-ctx.Done():
				errs[i] = ctx.Err()
				return
			}
			name := t.Name + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(t.Name))) + " |"
			if c.Paint != nil {
				name = c.Paint(i, name)
			}
			f := &Follower{Client: c.Client, Task: t.ID, Options: o, Print: prefixed(t.Name, name, show), Patience: cli.NewPatience(notice)}
			ends[i], errs[i] = f.Run(ctx)
		})
	}
	followers.Wait()
	return ends, errors.Join(errs...)
}

// once returns a function that prints a message only once if all followers report it,
// such as the loss of the daemon.
func (c *Many) once() func(string, ...any) {
	var mu sync.Mutex
	last := ""
	return func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		if format != last {
			last = format
			c.Console.Say(format, args...)
		}
	}
}

// onceEach prints a notice to all tasks only once.
func onceEach(print func(api.LogLine) error) func(api.LogLine) error {
	var mu sync.Mutex
	told := map[string]bool{}
	return func(l api.LogLine) error {
		if l.Notice != "" {
			mu.Lock()
			defer mu.Unlock()
			if told[l.Notice] {
				return nil
			}
			told[l.Notice] = true
		}
		return print(l)
	}
}

// Prefixed prints lines of a container with a prefix; see prefixed.
func Prefixed(name, prefix string, print func(api.LogLine) error) func(api.LogLine) error {
	return prefixed(name, prefix, print)
}

// prefixed prints whole lines with a prefix, so that the parts of lines from different
// tasks do not mix. Notices have only the name.
func prefixed(name, prefix string, print func(api.LogLine) error) func(api.LogLine) error {
	open := map[string]string{}
	return func(l api.LogLine) error {
		if l.Stream == "carma" && l.Notice != "" {
			return print(l)
		}
		if l.Stream == "carma" {
			l.Line = name + ": " + l.Line
			return print(l)
		}
		text := open[l.Stream] + l.Line
		if l.Partial && len(text) < 64<<10 {
			open[l.Stream] = text
			return nil
		}
		delete(open, l.Stream)
		l.Line, l.Partial = prefix+" "+text, false
		return print(l)
	}
}

// stop requests the end of all tasks.
func (c *Many) stop(ctx context.Context, r api.StopRequest) error {
	_, err := c.Client.StopGroup(ctx, c.Group, r)
	return err
}

// tellAtMost is the largest number of lines about tasks that did not end well.
const tellAtMost = 10

// Finish reports the ends of the tasks and returns the error with which to exit: their
// highest exit code.
func (c *Many) Finish(ends []api.Task, err error) error {
	var detached *detachedError
	switch {
	case errors.As(err, &detached):
		if detached.stopping {
			c.Console.Say("group %s is being stopped: carma ps --group %s", c.Group, c.Group)
		} else {
			c.Console.Say("group %s goes on without this terminal: carma ps --group %s shows it, carma stop --group %s ends it", c.Group, c.Group, c.Group)
		}
		return detached.code()
	case cli.Away(err):
		c.Console.Say("the daemon does not come back; the tasks go on without it: carma ps --group %s", c.Group)
		return cli.CodeError(cli.ExitCarma)
	case err != nil:
		return err
	}
	worst, bad := cli.ExitOK, 0
	for i := range ends {
		t := &ends[i]
		worst = max(worst, cli.TaskCode(t))
		if t.Phase == string(model.Succeeded) {
			continue
		}
		if bad++; bad <= tellAtMost {
			c.Console.Say("task %d (%s) %s", t.ID, t.Name, cli.Printable(cli.Ending(t)))
		}
	}
	if bad > 0 {
		c.Console.Say("%d of %d tasks succeeded; carma ps -a --group %s lists all", len(ends)-bad, len(ends), c.Group)
		return cli.CodeError(worst)
	}
	return nil
}
