package tasks

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"carma/cmd/carma/attach"
	"carma/cmd/carma/cli"
	"carma/cmd/carma/pick"
	"carma/runner/api"
)

// exitTimeout is the exit code after --timeout, the same as timeout(1)'s.
const exitTimeout = 124

// Wait returns the command carma wait.
func Wait(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "wait [flags] TASK... | --mine | --group NAME",
		GroupID: cli.GroupTasks,
		Short:   "Wait until tasks have finished and print their exit codes",
		Long: `Wait until the tasks have finished and print the exit code of each, in the order
of the command line. Exits with the last code that is not 0. A task that never
ran has code 125; 127 if its program is not there, and 126 if that cannot be
run. One that was cancelled before it ran has code 1.

--any waits for the first of them that finishes, prints its number and its code,
and exits with that. --timeout gives up after a time, with code 124; the tasks
go on.

TASK is a number, a name or the beginning of one, a pattern of names ('exp-*'),
or @ for your last task. --mine, --user, --group, --label and --filter choose
among the unfinished tasks; --group also has those that have finished. Then the
codes are in the order of the tasks' numbers, and the command exits with the
highest.`,
		Example: `  carma wait 17 18; carma wait @ && carma run my/evaluation:1
  carma wait --any 'exp-*'; carma wait --mine --timeout 8h`,
		Args: pick.Named,

		ValidArgsFunction: pick.Complete(false),
	}
	var s pick.Selector
	s.Flags(cmd)
	first := cmd.Flags().Bool("any", false, "only for the first that finishes")
	var limit time.Duration
	cli.DurationFlag(cmd.Flags(), &limit, "timeout", "give up after this time: 90 (seconds), 30m, 8h")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		client, err := a.Client(cmd)
		if err != nil {
			return err
		}
		ctx := cmd.Context()
		if limit > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, limit)
			defer cancel()
		}
		err = waitFor(ctx, cmd, a, client, &s, args, *first)
		if limit > 0 && ctx.Err() != nil {
			a.Say("gave up after %s; the tasks go on", limit)
			return cli.CodeError(exitTimeout)
		}
		return err
	}
	return cmd
}

// waitFor waits for the tasks that a command line names or selects.
func waitFor(ctx context.Context, cmd *cobra.Command, a *cli.App, client *api.Client, s *pick.Selector, args []string, first bool) error {
	if len(args) > 0 {
		refs, err := pick.Refs(ctx, client, args, false)
		if err != nil {
			return err
		}
		if first {
			return waitAny(ctx, a, client, refs)
		}
		return waitNamed(ctx, cmd, a, client, refs)
	}
	list, err := chosen(ctx, a, client, s)
	if err != nil {
		return err
	}
	slices.SortFunc(list, func(a, b api.Task) int { return int(a.ID - b.ID) })
	if !first {
		return waitAll(ctx, a, client, list)
	}
	refs := make([]string, len(list))
	for i := range list {
		refs[i] = strconv.FormatInt(list[i].ID, 10)
	}
	return waitAny(ctx, a, client, refs)
}

// chosen returns the tasks selected by flags: all tasks of a group if only a group is
// given, otherwise the selected unfinished tasks.
func chosen(ctx context.Context, a *cli.App, client *api.Client, s *pick.Selector) (list []api.Task, err error) {
	err = cli.BeginPatience(a.Say).Do(ctx, func() (err error) {
		if s.Group != "" && !s.Many() {
			list, err = client.Group(ctx, s.Group)
		} else {
			list, err = s.Tasks(ctx, client)
		}
		return err
	})
	if err == nil && len(list) == 0 {
		a.Say("there is nothing to wait for")
		s.SayNobody(ctx, a, client, 0)
	}
	return list, err
}

// waitNamed waits for each task and prints its exit code. It exits with the last code
// other than 0.
func waitNamed(ctx context.Context, cmd *cobra.Command, a *cli.App, client *api.Client, refs []string) error {
	code := cli.ExitOK
	err := a.Each(cmd, refs, func(ref string) error {
		task, err := attach.UntilFinished(ctx, a, client, ref)
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return cli.CodeError(exitTimeout) // the caller reports it once for all tasks
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		c := cli.TaskCode(&task)
		a.Println(c)
		if c != cli.ExitOK {
			code = c
		}
		return nil
	})
	if err == nil && code != cli.ExitOK {
		err = cli.CodeError(code)
	}
	return err
}

// waitAll waits for all tasks, prints their codes and exits with the highest.
func waitAll(ctx context.Context, a *cli.App, client *api.Client, all []api.Task) error {
	var err error
	for i := range all {
		if !all[i].Finished() {
			if all[i], err = attach.UntilFinished(ctx, a, client, strconv.FormatInt(all[i].ID, 10)); err != nil {
				return err
			}
		}
		a.Println(cli.TaskCode(&all[i]))
	}
	if code := groupCode(all); code != cli.ExitOK {
		return cli.CodeError(code)
	}
	return nil
}

// groupCode returns the exit code for finished tasks of a group, the highest of the tasks'
// codes.
func groupCode(tasks []api.Task) int {
	worst := cli.ExitOK
	for i := range tasks {
		worst = max(worst, cli.TaskCode(&tasks[i]))
	}
	return worst
}

// lookAgain is the time for which waitAny relies only on the stream of changes. Then it
// reads the tasks again, to find changes between the previous read and the beginning of
// the stream.
const lookAgain = 2 * time.Second

// waitAny waits until the first of several tasks has finished. It needs only one
// connection for any number of tasks.
func waitAny(ctx context.Context, a *cli.App, client *api.Client, refs []string) error {
	asked := map[int64]bool{} // only for look-up
	var end *api.Task
	look := func() error {
		for _, ref := range refs {
			t, err := client.Task(ctx, ref)
			if err != nil {
				return err
			}
			asked[t.ID] = true
			if t.Finished() && end == nil {
				end = &t
			}
		}
		return nil
	}
	patience := cli.BeginPatience(a.Say)
	for {
		if err := patience.Do(ctx, look); err != nil {
			return err
		}
		if end != nil {
			break
		}
		watch, cancel := context.WithTimeout(ctx, lookAgain)
		err := client.WatchAll(watch, func(t api.Task) error {
			if asked[t.ID] && t.Finished() {
				end = &t
				return api.ErrStop
			}
			return nil
		})
		cancel()
		if end != nil {
			break
		}
		if err != nil && watch.Err() == nil && !cli.Away(err) && !errors.Is(err, context.Canceled) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	code := cli.TaskCode(end)
	a.Printf("%d %d\n", end.ID, code)
	if code != cli.ExitOK {
		return cli.CodeError(code)
	}
	return nil
}
