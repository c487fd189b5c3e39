package tasks

import (
	"bufio"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"carma/cmd/carma/cli"
	"carma/cmd/carma/pick"
	"carma/runner/api"
)

// Rm returns the command carma rm.
func Rm(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "rm [flags] TASK... | --finished",
		GroupID: cli.GroupTasks,
		Short:   "Remove finished tasks with their output",
		Long: `Remove finished tasks with their output. TASK is a number, a name or the
beginning of one, a pattern of names ('exp-*'), or @ for your last task.
--finished removes your finished tasks; --group, --label, --filter, --failed and
--until choose among them; --user and --all are for admins, who may remove those
of others.`,
		Example: `  carma rm 17 'exp-*'
  carma rm --finished --until 7d; carma rm --finished --group exp`,
		Args: func(cmd *cobra.Command, args []string) error {
			if flag := pick.Given(cmd); flag != "" && flag != "--finished" && !cmd.Flags().Changed("finished") {
				return cli.Usagef("add --finished", "%s chooses among finished tasks", flag)
			}
			return pick.Named(cmd, args)
		},

		ValidArgsFunction: pick.Complete(true),
	}
	force := cmd.Flags().BoolP("force", "f", false, "stop unfinished tasks first")
	now := cmd.Flags().Bool("now", false, "with -f: kill them at once")
	var s pick.Selector
	s.Flags(cmd)
	s.TimeFlags(cmd.Flags())
	cmd.Flags().BoolVar(&s.Finished, "finished", false, "your finished tasks")
	all := cmd.Flags().Bool("all", false, "with --finished: those of others too")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		client, err := a.Client(cmd)
		if err != nil {
			return err
		}
		if s.Finished {
			s.Mine = s.Mine || s.User == "" && !*all
			list, err := s.Tasks(cmd.Context(), client)
			if err != nil {
				return err
			}
			return removeAll(cmd, a, client, list)
		}
		refs, err := pick.Refs(cmd.Context(), client, args, true)
		if err != nil {
			return err
		}
		return a.Each(cmd, refs, func(ref string) error {
			task, err := client.Task(cmd.Context(), ref)
			if err != nil {
				return err
			}
			if !task.Finished() {
				if !*force {
					return cli.Usagef("stop it first, or use -f", "task %s is %s", ref, task.Phase)
				}
				if err := stopAndWait(cmd.Context(), a, client, ref, api.StopRequest{Reason: "removed", Now: *now}); err != nil {
					return err
				}
			}
			if err := client.Remove(cmd.Context(), ref); err != nil {
				return err
			}
			a.Println(ref)
			return nil
		})
	}
	return cmd
}

// removeAll removes finished tasks and prints their ids.
func removeAll(cmd *cobra.Command, a *cli.App, client *api.Client, list []api.Task) error {
	if len(list) == 0 {
		a.Say("there is nothing to remove")
	}
	refs := make([]string, len(list))
	for i := range list {
		refs[i] = strconv.FormatInt(list[len(list)-1-i].ID, 10) // the oldest first
	}
	return a.Each(cmd, refs, func(ref string) error {
		if err := client.Remove(cmd.Context(), ref); err != nil {
			return err
		}
		a.Println(ref)
		return nil
	})
}

// Prune returns the command carma prune.
func Prune(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "prune [flags]",
		GroupID: cli.GroupTasks,
		Short:   "Remove your finished tasks with their output, after a question",
		Long: `Remove your finished tasks with their output: carma rm --finished after a
question. carma config --all shows after what time and number the daemon removes
them by itself (keep-tasks, keep-tasks-for, keep-output-for).`,
		Example:           "  carma prune; carma prune -f --until 7d",
		Args:              cli.NoArgs,
		ValidArgsFunction: cli.NoCompletion,
	}
	s := pick.Selector{Finished: true}
	s.Flags(cmd)
	s.TimeFlags(cmd.Flags())
	force := cmd.Flags().BoolP("force", "f", false, "do not ask")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		client, err := a.Client(cmd)
		if err != nil {
			return err
		}
		s.Mine = s.Mine || s.User == ""
		list, err := s.Tasks(cmd.Context(), client)
		if err != nil {
			return err
		}
		if len(list) > 0 && !*force {
			what := cli.Count(len(list), "finished task") + ", " + strconv.FormatInt(list[0].ID, 10)
			if len(list) > 1 {
				what = fmt.Sprintf("%d finished tasks, %d to %d", len(list), list[len(list)-1].ID, list[0].ID)
			}
			fmt.Fprintf(a.Err, "carma: remove %s, with their output? [y/N] ", what)
			answer, err := bufio.NewReader(a.In).ReadString('\n')
			if err != nil { // no user is there to end the line
				fmt.Fprintln(a.Err)
			}
			if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
				return cli.Usagef("-f does not ask", "nothing was removed")
			}
		}
		return removeAll(cmd, a, client, list)
	}
	return cmd
}
