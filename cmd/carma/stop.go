package main

import (
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"carma/runner/api"
)

func (a *app) stopCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "stop [flags] TASK... | --group NAME",
		Short: "Stop tasks, waiting or running",
		Long: `Stop tasks. A waiting task leaves its queue. A running task gets its stop signal
and is killed after the grace. Returns when they have ended; prints each name
as it was given. A second stop can only shorten the grace of a stopping task;
--now kills at once.`,
		Args: tasksOrGroup,

		ValidArgsFunction: a.completeTasks(false),
	}
	var request api.StopRequest
	var seconds int
	countFlagP(cmd.Flags(), &seconds, 0, "time", "t", "seconds between stop signal and kill")
	durationFlag(cmd.Flags(), &request.Grace, "grace", "the same as a time, for example 2m")
	cmd.Flags().BoolVar(&request.Now, "now", false, "kill at once, also what is stopping already")
	cmd.Flags().StringVar(&request.Reason, "reason", "", "why, for the task's record")
	group := cmd.Flags().String("group", "", "all unfinished tasks of this `group`")
	async := cmd.Flags().Bool("no-wait", false, "return at once")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case cmd.Flags().Changed("time") && cmd.Flags().Changed("grace"):
			return usagef("give one of them", "-t and --grace are the same")
		case cmd.Flags().Changed("time"):
			// 0 would mean the default: kill as good as at once.
			request.Grace = max(time.Nanosecond, time.Duration(seconds)*time.Second)
		}
		if request.Now && request.Grace > 0 {
			return usagef("give one of them", "--now leaves no time, -t and --grace do")
		}
		client, err := a.client(cmd)
		if err != nil {
			return err
		}
		if *group != "" {
			return a.stopGroup(cmd.Context(), client, *group, request, *async)
		}
		return a.each(cmd, args, func(ref string) error {
			if task, err := client.Task(cmd.Context(), ref); err == nil && task.Finished() {
				a.say("task %s has ended already: it is %s", ref, task.Phase)
			}
			if *async {
				if _, err := client.Stop(cmd.Context(), ref, request); err != nil {
					return err
				}
			} else if err := a.stopAndWait(cmd.Context(), client, ref, request); err != nil {
				return err
			}
			a.println(ref)
			return nil
		})
	}
	return cmd
}

// stopGroup stops the unfinished tasks of a group at once and prints their ids.
func (a *app) stopGroup(ctx context.Context, client *api.Client, group string, r api.StopRequest, async bool) error {
	stopped, err := client.StopGroup(ctx, group, r)
	if err != nil {
		return err
	}
	for _, id := range stopped.Tasks {
		if !async {
			if err := a.untilStopped(ctx, client, id, r.Now); err != nil {
				return err
			}
		}
		a.println(id)
	}
	return nil
}

func (a *app) stopAndWait(ctx context.Context, client *api.Client, ref string, r api.StopRequest) error {
	task, err := client.Stop(ctx, ref, r)
	if err != nil || task.Finished() {
		return err
	}
	return a.untilStopped(ctx, client, task.ID, r.Now)
}

// tellAfter is how long a stop waits without a word.
const tellAfter = 2 * time.Second

// untilStopped waits for the end of a task that was told to stop, and says what
// it waits for if that takes a while.
func (a *app) untilStopped(ctx context.Context, client *api.Client, id int64, now bool) error {
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
				continue // the other one says that the daemon is away
			}
			why := "it has until its grace is over, then it is killed (--now kills at once)"
			switch {
			case info.EngineDown != "":
				why = info.EngineDown
			case now:
				why = "it is being killed"
			}
			if why != last {
				a.say("waiting for the end of task %d: %s", id, why)
			}
			last = why
		}
	}()
	_, err := a.untilFinished(ctx, client, strconv.FormatInt(id, 10))
	end()
	<-told
	return err
}
