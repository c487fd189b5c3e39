package main

import (
	"github.com/spf13/cobra"

	"carma/runner/api"
)

func (a *app) inspectCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "inspect TASK...",
		Short: "Print all there is to know about tasks, as JSON",
		Long: `Print the tasks as a JSON list: the request, the memory estimate with its
method, every attempt with its GPUs, grant, peak and outcome. Memory is in
bytes, spans of time in nanoseconds.`,
		Args: tasks,

		ValidArgsFunction: a.completeTasks(true),
	}
	addJSON(cmd) // it always does; the flag is for those who expect it
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		client, err := a.client(cmd)
		if err != nil {
			return err
		}
		found := []api.Task{}
		wrong := a.each(cmd, args, func(ref string) error {
			task, err := client.Task(cmd.Context(), ref)
			if err == nil {
				found = append(found, task)
			}
			return err
		})
		if err := a.json(found); err != nil {
			return err
		}
		return wrong
	}
	return cmd
}
