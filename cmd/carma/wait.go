package main

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"carma/runner/api"
)

func (a *app) waitCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "wait TASK... | --group NAME",
		Short: "Wait until tasks have finished and print their exit codes",
		Long: `Wait until the tasks have finished and print the exit code of each, in the
order of the command line. Exits with the last one that is not 0. A task that
never ran has code 125, one that was cancelled before it ran code 1. With a
group the codes are printed in order of the tasks' numbers, and the command
exits with the highest.`,
		Args: tasksOrGroup,

		ValidArgsFunction: a.completeTasks(false),
	}
	group := cmd.Flags().String("group", "", "all tasks of this `group`")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		client, err := a.client(cmd)
		if err != nil {
			return err
		}
		if *group != "" {
			return a.waitGroup(cmd.Context(), client, *group)
		}
		code := exitOK
		err = a.each(cmd, args, func(ref string) error {
			task, err := a.untilFinished(cmd.Context(), client, ref)
			if err != nil {
				return err
			}
			c := taskCode(&task)
			a.println(c)
			if c != exitOK {
				code = c
			}
			return nil
		})
		if err == nil && code != exitOK {
			err = codeError(code)
		}
		return err
	}
	return cmd
}

// waitGroup waits for all tasks of a group, prints their codes and exits with
// the highest.
func (a *app) waitGroup(ctx context.Context, client *api.Client, group string) error {
	var all []api.Task
	err := beginPatience(a.say).do(ctx, func() (err error) { all, err = client.Group(ctx, group); return err })
	if err != nil {
		return err
	}
	for i := range all {
		if !all[i].Finished() {
			if all[i], err = a.untilFinished(ctx, client, strconv.FormatInt(all[i].ID, 10)); err != nil {
				return err
			}
		}
		a.println(taskCode(&all[i]))
	}
	if code := groupCode(all); code != exitOK {
		return codeError(code)
	}
	return nil
}

// untilFinished waits for a task, across restarts of the daemon.
func (a *app) untilFinished(ctx context.Context, client *api.Client, ref string) (api.Task, error) {
	var task api.Task
	err := beginPatience(a.say).do(ctx, func() (err error) { task, err = client.Task(ctx, ref); return err })
	if err != nil {
		return task, err
	}
	ref = strconv.FormatInt(task.ID, 10) // the name may go to another task
	p := newPatience(a.say)
	for !task.Finished() {
		err := client.Watch(ctx, ref, func(t api.Task) error {
			p.answered()
			task = t
			if t.Finished() {
				return api.ErrStop
			}
			return nil
		})
		if err == nil && !task.Finished() {
			err = &api.NoDaemonError{Socket: client.Socket()} // it ended the stream: it stops
		}
		if err != nil {
			if err := p.retry(ctx, err); err != nil {
				return task, err
			}
		}
	}
	return task, nil
}

// groupCode is the exit code for finished tasks of a group: the highest.
func groupCode(tasks []api.Task) int {
	worst := exitOK
	for i := range tasks {
		worst = max(worst, taskCode(&tasks[i]))
	}
	return worst
}
