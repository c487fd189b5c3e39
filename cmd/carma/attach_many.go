package main

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"unicode/utf8"

	"carma/mapper"
	"carma/runner/api"
)

// crowd is carma run in the foreground with several tasks: it shows the output
// of all, each line with the task's name before it.
type crowd struct {
	attached
	group string
	tasks []api.Submitted
	// paint gives the name before a task's lines its look; nil: as it is.
	paint func(task int, name string) string
}

// followAtMost is how many outputs are followed at a time; with more tasks,
// the later ones are shown when earlier ones have ended.
const followAtMost = 128

// run returns the finished tasks; a *detachedError when the user has left.
func (c *crowd) run(ctx context.Context) ([]api.Task, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	var helpers sync.WaitGroup
	defer helpers.Wait()
	defer cancel(nil)
	helpers.Go(func() { c.obey(ctx, cancel, "group "+c.group, c.stop) })
	ends, err := c.follow(ctx, api.LogOptions{Follow: true})
	var detached *detachedError
	if errors.As(context.Cause(ctx), &detached) {
		return ends, detached
	}
	return ends, err
}

// follow shows the output of all tasks and returns them as they are then.
func (c *crowd) follow(ctx context.Context, o api.LogOptions) ([]api.Task, error) {
	width := 0
	for _, t := range c.tasks {
		width = max(width, min(24, utf8.RuneCountInString(t.Name)))
	}
	ends, errs := make([]api.Task, len(c.tasks)), make([]error, len(c.tasks))
	notice, show := c.once(), onceEach(c.console.line)
	var followers sync.WaitGroup
	room := make(chan struct{}, followAtMost)
	for i, t := range c.tasks {
		followers.Go(func() {
			select {
			case room <- struct{}{}:
				defer func() { <-room }()
			case <-ctx.Done():
				errs[i] = ctx.Err()
				return
			}
			name := t.Name + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(t.Name))) + " |"
			if c.paint != nil {
				name = c.paint(i, name)
			}
			f := &follower{client: c.client, task: t.ID, options: o, print: prefixed(t.Name, name, show), patience: newPatience(notice)}
			ends[i], errs[i] = f.run(ctx)
		})
	}
	followers.Wait()
	return ends, errors.Join(errs...)
}

// once says what all followers notice, as they come and go with the daemon,
// one time.
func (c *crowd) once() func(string, ...any) {
	var mu sync.Mutex
	last := ""
	return func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		if format != last {
			last = format
			c.console.say(format, args...)
		}
	}
}

// onceEach prints a notice that all tasks get one time.
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

// prefixed prints whole lines with a prefix: the parts of a line would get
// between those of others. Notices have the name alone.
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

// stop asks for all tasks to end.
func (c *crowd) stop(ctx context.Context, r api.StopRequest) error {
	_, err := c.client.StopGroup(ctx, c.group, r)
	return err
}

// tellAtMost bounds the lines about tasks that did not end well.
const tellAtMost = 10

// finish tells how the tasks ended and returns the error to exit with: the
// highest code among theirs.
func (c *crowd) finish(ends []api.Task, err error) error {
	var detached *detachedError
	switch {
	case errors.As(err, &detached):
		c.console.say("group %s goes on without this terminal: carma ps --group %s", c.group, c.group)
		if detached.by == syscall.SIGTERM {
			return codeError(128 + int(syscall.SIGTERM))
		}
		return codeError(exitDetached)
	case away(err):
		c.console.say("the daemon does not come back; the tasks go on without it: carma ps --group %s", c.group)
		return codeError(exitCarma)
	case err != nil:
		return err
	}
	worst, bad := exitOK, 0
	for i := range ends {
		t := &ends[i]
		worst = max(worst, taskCode(t))
		if t.Phase == string(mapper.Succeeded) {
			continue
		}
		if bad++; bad <= tellAtMost {
			c.console.say("task %d (%s) %s", t.ID, t.Name, printable(ending(t)))
		}
	}
	if bad > 0 {
		c.console.say("%d of %d tasks succeeded; carma ps -a --group %s lists all", len(ends)-bad, len(ends), c.group)
		return codeError(worst)
	}
	return nil
}

// printIDs prints the numbers of submitted tasks, one per line.
func (a *app) printIDs(tasks []api.Submitted) {
	for _, t := range tasks {
		a.println(strconv.FormatInt(t.ID, 10))
	}
}
