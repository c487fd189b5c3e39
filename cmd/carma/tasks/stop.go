package tasks

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"carma/cmd/carma/attach"
	"carma/cmd/carma/cli"
	"carma/cmd/carma/pick"
	"carma/runner/api"
)

// Stop returns the command carma stop.
func Stop(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "stop [flags] TASK... | --mine | --group NAME",
		GroupID: cli.GroupTasks,
		Short:   "Stop tasks, waiting or running",
		Long: `Stop tasks. A waiting task leaves its queue. A running task gets its stop signal
and is killed after the grace. Returns when they have ended; prints each name
as it was given. A second stop can only shorten the grace of a stopping task;
--now kills at once.

TASK is a number, a name or the beginning of one, a pattern of names ('exp-*'),
@ for your last task or @~2 for the second before it. --mine, --user, --group,
--label and --filter choose among the unfinished tasks, as in carma ps; --all is
all that you may stop.`,
		Example: `  carma stop 17 exp-3; carma stop @; carma stop 'exp-*'
  carma stop --mine --filter status=waiting`,
		Args: pick.Named,

		ValidArgsFunction: pick.Complete(false),
	}
	var request api.StopRequest
	grace := time.Duration(0)
	cli.TimeFlag(cmd.Flags(), &grace, "time", "t", "time between stop signal and kill: 30 (s), 2m")
	cli.TimeFlag(cmd.Flags(), &grace, "grace", "", "the same")
	cmd.Flags().BoolVar(&request.Now, "now", false, "kill at once, also tasks that are already stopping")
	cmd.Flags().StringVar(&request.Reason, "reason", "", "reason for the stop, kept with the task")
	var s pick.Selector
	s.Flags(cmd)
	all := cmd.Flags().Bool("all", false, "all unfinished tasks that you may stop")
	async := cmd.Flags().Bool("no-wait", false, "return before the tasks have ended")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case cmd.Flags().Changed("time") && cmd.Flags().Changed("grace"):
			return cli.Usagef("give one of them", "-t and --grace are the same")
		case cmd.Flags().Changed("time") || cmd.Flags().Changed("grace"):
			// 0 would mean the default: kill almost at once.
			request.Grace = max(time.Nanosecond, grace)
		}
		if request.Now && request.Grace > 0 {
			return cli.Usagef("give one of them", "--now leaves no time, -t and --grace do")
		}
		client, err := a.Client(cmd)
		if err != nil {
			return err
		}
		if len(args) == 0 {
			if *all || s.Group == "" || pick.Given(cmd) != "--group" || s.Many() {
				return stopAll(cmd.Context(), a, client, &s, request, *async)
			}
			return stopGroup(cmd.Context(), a, client, s.Group, request, *async)
		}
		refs, err := pick.Refs(cmd.Context(), client, args, false)
		if err != nil {
			return err
		}
		return a.Each(cmd, refs, func(ref string) error {
			if task, err := client.Task(cmd.Context(), ref); err == nil && task.Finished() {
				a.Say("task %s has ended already: it is %s", ref, task.Phase)
			}
			if *async {
				if _, err := client.Stop(cmd.Context(), ref, request); err != nil {
					return err
				}
			} else if err := stopAndWait(cmd.Context(), a, client, ref, request); err != nil {
				return err
			}
			a.Println(ref)
			return nil
		})
	}
	return cmd
}

// stopAll stops the selected tasks, all at once, and prints their ids. It skips and
// counts the tasks of others that the caller may not stop.
func stopAll(ctx context.Context, a *cli.App, client *api.Client, s *pick.Selector, r api.StopRequest, async bool) error {
	list, err := s.Tasks(ctx, client)
	if err != nil {
		return err
	}
	// The newest first, so that pending tasks are stopped before the running tasks that they
	// would replace.
	var stopped []int64
	others := 0
	for i := range list {
		task, err := client.Stop(ctx, strconv.FormatInt(list[i].ID, 10), r)
		if status, ok := errors.AsType[*api.StatusError](err); ok && (status.Status == http.StatusForbidden || status.Status == http.StatusNotFound) {
			if status.Status == http.StatusForbidden {
				others++
			}
			continue
		}
		if err != nil {
			return err
		}
		stopped = append(stopped, task.ID)
	}
	slices.Sort(stopped)
	for _, id := range stopped {
		if !async {
			if err := untilStopped(ctx, a, client, id, r.Now); err != nil {
				return err
			}
		}
		a.Println(id)
	}
	switch {
	case others > 0:
		a.Say("left alone: %s of others", cli.Count(others, "task"))
	case len(list) == 0:
		a.Say("there is nothing to stop")
		s.SayNobody(ctx, a, client, 0)
	}
	return nil
}

// stopGroup stops the unfinished tasks of a group at once and prints their ids.
func stopGroup(ctx context.Context, a *cli.App, client *api.Client, group string, r api.StopRequest, async bool) error {
	stopped, err := client.StopGroup(ctx, group, r)
	if err != nil {
		return err
	}
	for _, id := range stopped.Tasks {
		if !async {
			if err := untilStopped(ctx, a, client, id, r.Now); err != nil {
				return err
			}
		}
		a.Println(id)
	}
	return nil
}

func stopAndWait(ctx context.Context, a *cli.App, client *api.Client, ref string, r api.StopRequest) error {
	task, err := client.Stop(ctx, ref, r)
	if err != nil || task.Finished() {
		return err
	}
	return untilStopped(ctx, a, client, task.ID, r.Now)
}

// tellAfter is the time after which a stop reports why it waits.
const tellAfter = 2 * time.Second

// untilStopped waits for the end of a task after a stop request. If it takes a while, it
// reports why it waits.
func untilStopped(ctx context.Context, a *cli.App, client *api.Client, id int64, now bool) error {
	watch, end := context.WithCancel(ctx)
	told := make(chan struct{})
	go func() {
		defer close(told)
		last := ""
		for {
			select {
			case <-watch.Done():
				return
			case <-time.After(tellAfter):
			}
			info, err := client.Info(watch)
			if err != nil {
				continue // the other one reports that the daemon does not answer
			}
			why := "it has until its grace is over, then it is killed (--now kills at once)"
			switch {
			case info.EngineDown != "":
				why = info.EngineDown
			case now:
				why = "it is being killed"
			}
			if why != last {
				a.Say("waiting for the end of task %d: %s", id, why)
			}
			last = why
		}
	}()
	_, err := attach.UntilFinished(ctx, a, client, strconv.FormatInt(id, 10))
	end()
	<-told
	return err
}
