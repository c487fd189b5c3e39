package main

import (
	"github.com/spf13/cobra"

	"carma/runner/api"
)

func (a *app) rmCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rm [flags] TASK...",
		Short: "Remove finished tasks with their output",
		Args:  tasks,

		ValidArgsFunction: a.completeTasks(true),
	}
	force := cmd.Flags().BoolP("force", "f", false, "stop them first")
	now := cmd.Flags().Bool("now", false, "with -f: kill them at once")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		client, err := a.client(cmd)
		if err != nil {
			return err
		}
		return a.each(cmd, args, func(ref string) error {
			task, err := client.Task(cmd.Context(), ref)
			if err != nil {
				return err
			}
			if !task.Finished() {
				if !*force {
					return usagef("stop it first, or use -f", "task %s is %s", ref, task.Phase)
				}
				if err := a.stopAndWait(cmd.Context(), client, ref, api.StopRequest{Reason: "removed", Now: *now}); err != nil {
					return err
				}
			}
			if err := client.Remove(cmd.Context(), ref); err != nil {
				return err
			}
			a.println(ref)
			return nil
		})
	}
	return cmd
}
