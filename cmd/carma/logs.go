package main

import (
	"encoding/json"
	"strconv"

	"github.com/spf13/cobra"

	"carma/runner/api"
)

func (a *app) logsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "logs [flags] TASK",
		Short: "Show a task's output",
		Long: `Show the output of all attempts of a task: its standard output on standard
output, its standard error and notices of carma on standard error. If output is
missing, a notice says how much, and why. With --json each line is an object,
and all of them go to standard output.`,
		Args: oneTask,

		ValidArgsFunction: a.completeTasks(true),
	}
	var o api.LogOptions
	flags := cmd.Flags()
	flags.BoolVarP(&o.Follow, "follow", "f", false, "go on until the task has finished")
	tail := flags.StringP("tail", "n", "all", "only the last `N` lines of what there is")
	countFlag(flags, &o.Attempt, 1, "attempt", "only this attempt")
	stamp := flags.BoolP("timestamps", "t", false, "print the time before each line")
	asJSON := cmd.Flags().Bool("json", false, "print JSON, one line of output per line")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *tail != "all" {
			n, err := strconv.Atoi(*tail)
			if err != nil || n < 1 {
				return usagef("write for example --tail 100", "--tail: %q is not a number from 1 on", *tail)
			}
			o.Tail = n
		}
		client, err := a.client(cmd)
		if err != nil {
			return err
		}
		console := a.console()
		console.stamp = *stamp
		print := console.line
		if *asJSON {
			e := json.NewEncoder(a.out)
			e.SetEscapeHTML(false)
			print = func(l api.LogLine) error { return e.Encode(l) }
		}
		if !o.Follow {
			_, err := client.Logs(cmd.Context(), args[0], o, print)
			return err
		}
		// By number: the name may go to another task.
		var task api.Task
		err = beginPatience(console.say).do(cmd.Context(), func() (err error) { task, err = client.Task(cmd.Context(), args[0]); return err })
		if err != nil {
			return err
		}
		f := &follower{client: client, task: task.ID, options: o, print: print, patience: newPatience(console.say)}
		_, err = f.run(cmd.Context())
		return err
	}
	return cmd
}
